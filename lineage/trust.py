"""Confirmed settings: values of a run's configuration that coevo may act on in this workspace.

``trusted.json`` lies next to the runs, out of reach of a remote, and is valid only in the directory in which it was
written: a copied workspace asks for every value again. Per run, and per version of a registered model
(``MODEL/VERSION``), it lists the values that a user confirmed for each setting of ``coevo.configs.trust_settings``;
another value of the same setting needs a new confirmation.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock
from pydantic import ConfigDict, TypeAdapter

from coevo.configs.trust_settings import Setting, chosen
from coevo.lineage.atomic_files import write_atomically
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.configs.run_config import RunConfig

FILE = "trusted.json"
CONFIRMED = TypeAdapter(dict[str, dict[str, list[Any]]], config=ConfigDict(defer_build=True))
"""Confirmed values by run and setting."""


class UntrustedError(CoevoError):
    """Error for a run with unconfirmed settings: names them, their values and the remedy."""


class Trust:
    """The confirmed settings of a workspace.

    Args:
        workspace: its directory.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._file = workspace / FILE

    def open_questions(self, run: str, config: "RunConfig") -> list[Setting]:
        """Settings of a configuration that no user has confirmed for a run."""
        return self.unconfirmed(run, list(chosen(config)))

    def unconfirmed(self, name: str, wanted: Sequence[Setting]) -> list[Setting]:
        """Settings among ``wanted`` that no user has confirmed for a run or a version of a model."""
        confirmed = self._read().get(name, {}) if wanted else {}
        return [each for each in wanted if not _holds(confirmed, each)]

    def require(self, run: str, config: "RunConfig") -> None:
        """Check that all settings are confirmed. Raises ``UntrustedError``."""
        self.require_settings(run, list(chosen(config)))

    def require_settings(self, name: str, wanted: Sequence[Setting]) -> None:
        """Check that these settings of a run or a version of a model are confirmed. Raises ``UntrustedError``."""
        left = self.unconfirmed(name, wanted)
        if left:
            raise _unconfirmed(name, left)

    def demand(self, run: str, config: "RunConfig") -> None:
        """Check that all settings are confirmed, then extend Python's path by ``python_path``.

        Call it before anything of the configuration is imported, started, loaded or connected to.

        Raises:
            UntrustedError: a setting is not confirmed.
        """
        self.require(run, config)
        extend_path(config)

    def confirm(self, run: str, settings: Iterable[Setting]) -> None:
        """Record that a user chose or confirmed these values."""
        wanted = list(settings)
        if wanted:
            self._change(run, lambda confirmed: _added(confirmed, wanted))

    def begin(self, run: str, settings: Iterable[Setting]) -> None:
        """Record the values of a new run, in place of those of an earlier run of this name."""
        wanted = list(settings)
        if wanted or run in self._read():
            self._change(run, lambda _: _added({}, wanted))

    def _change(self, run: str, change: Callable[[Mapping[str, list[Any]]], dict[str, list[Any]]]) -> None:
        self._workspace.mkdir(parents=True, exist_ok=True)
        with FileLock(self._workspace / "trusted.lock"):
            runs = self._read()
            runs[run] = change(runs.get(run, {}))
            known = {"workspace": self._place(), "runs": {name: runs[name] for name in sorted(runs) if runs[name]}}
            write_atomically(self._file, json.dumps(known, indent=1) + "\n", private=True)

    def _read(self) -> dict[str, dict[str, list[Any]]]:
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
            runs = CONFIRMED.validate_python(known["runs"])
            return runs if known["workspace"] == self._place() else {}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError):
            raise CoevoError(
                f"{self._file}: damaged, so no setting counts as confirmed: remove it and confirm them again"
            ) from None

    def _place(self) -> list[object]:
        """Identity of the workspace: the directory's path and its inode."""
        return [str(self._workspace.resolve()), self._workspace.stat().st_ino]


Consent = Callable[[Trust, Mapping[str, Sequence[Setting]]], None]
"""Require that a user has confirmed the settings of versions of models, by name of the version."""


def confirmed_before(trust: Trust, settings: Mapping[str, Sequence[Setting]]) -> None:
    """Require that a user has confirmed the settings in an earlier command. Raises ``UntrustedError``."""
    for name, wanted in settings.items():
        trust.require_settings(name, wanted)


def described(setting: Setting) -> str:
    """A setting with its value and its use, in ASCII: a value cannot disguise itself."""
    return f"{setting.name} = {json.dumps(setting.value)} (coevo {setting.does})"


def extend_path(config: "RunConfig") -> None:
    """Extend Python's path by ``python_path``, after all installed packages; the user must have confirmed it.

    Raises:
        CoevoError: a folder is not on this machine.
    """
    absent = next((folder for folder in config.python_path if not Path(folder).is_dir()), None)
    if absent is not None:
        raise CoevoError(
            f"python_path: {absent} is no folder on this machine: put your modules there, or continue the run as a "
            "branch, `coevo branch RUN NAME python_path=[FOLDER]`"
        )
    sys.path.extend(folder for folder in config.python_path if folder not in sys.path)


def _unconfirmed(run: str, left: Sequence[Setting]) -> UntrustedError:
    names = ",".join(each.name for each in left)
    kind, also = ("model", "") if "/" in run else ("run", ", or to `coevo resume`")
    return UntrustedError(
        f"{kind} {run!r} has settings that are not confirmed here: {'; '.join(map(described, left))}; if you "
        f"trust them, add --trust {names} to the command{also}"
    )


def _added(confirmed: Mapping[str, list[Any]], settings: Iterable[Setting]) -> dict[str, list[Any]]:
    found = {name: list(values) for name, values in confirmed.items()}
    for each in settings:
        if not _holds(found, each):
            found.setdefault(each.name, []).append(each.value)
    return found


def _holds(confirmed: Mapping[str, list[Any]], setting: Setting) -> bool:
    """Compare by JSON: to Python ``1`` and ``true`` are equal."""
    return json.dumps(setting.value, sort_keys=True) in (
        json.dumps(value, sort_keys=True) for value in confirmed.get(setting.name, ())
    )
