"""The manifest of a revision: its complete content, as one canonical JSON file.

``state`` is equal in a repeated run, bit for bit, so it has no times, no versions of tables and not the run's name:
``revision``, ``iteration``, ``parent``, ``restored_from``, ``config``, ``config_hash``, ``code``,
``packages`` {name: version}, ``modules`` {name: hash} if the settings name modules of the user's own,
``artifacts`` {name: content hash}, ``tables`` {table: content hash}, ``cursor``, ``metrics``, ``panels`` {name: hash},
``accepted_change``, and ``until_next`` [artifact] if the revision keeps some only until the next one.
``observed`` is the rest: ``timestamp`` (ms since 1970), ``run``, ``tables`` {table: version}, ``metrics`` that are
times or rates, ``mlflow_run``.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

from coevo.lineage.atomic_files import write_atomically
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True)
class Manifest:
    """Manifest of one revision, as its commit holds it."""

    state: Mapping[str, Any]
    observed: Mapping[str, Any]

    @classmethod
    def of(cls, state: Mapping[str, Any], observed: Mapping[str, Any]) -> Self:
        """Create a manifest of plain JSON values, equal to its own serialisation read back.

        Raises:
            CoevoError: a number is not finite: JSON cannot hold it, and it would equal no other.
        """
        for name, value in [*_floats(state, "state"), *_floats(observed, "observed")]:
            if not math.isfinite(value):
                raise CoevoError(f"manifest: {name} = {value}: leave out what was not measured")
        return cls.parse(_canonical({"state": state, "observed": observed}))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Inverse of ``text``."""
        fields = json.loads(text)
        return cls(fields["state"], fields["observed"])

    @classmethod
    def exactly(cls, content: bytes) -> Self:
        """Inverse of ``text`` for foreign content; nothing that reads otherwise is a manifest.

        Raises:
            CoevoError: it is not the output of ``text``.
        """
        try:
            said = content.decode()
            found = cls.parse(said)
            same = isinstance(found.state, dict) and isinstance(found.observed, dict) and found.text() == said
        except (ValueError, KeyError, TypeError, RecursionError):
            same = False
        if not same:
            raise CoevoError("its manifest is not as coevo writes it")
        return found

    def text(self) -> str:
        """Canonical JSON: sorted keys, one value per line, a newline at the end."""
        return _canonical({"state": self.state, "observed": self.observed})

    @property
    def revision(self) -> int:
        """Number of commits before this one."""
        return cast(int, self.state["revision"])

    @property
    def iteration(self) -> int:
        """Number of policy updates before this state."""
        return cast(int, self.state["iteration"])

    @property
    def parent(self) -> int | None:
        """Previous revision; None for revision 0."""
        return cast(int | None, self.state["parent"])

    @property
    def restored_from(self) -> int | None:
        """Revision whose state a rollback repeats; None otherwise."""
        return cast(int | None, self.state["restored_from"])

    @property
    def artifacts(self) -> Mapping[str, str]:
        """Content hash of each artifact."""
        return cast(Mapping[str, str], self.state["artifacts"])

    @property
    def until_next(self) -> Sequence[str]:
        """Artifacts that may be gone as soon as a newer revision exists."""
        return cast(Sequence[str], self.state.get("until_next", ()))

    def kept(self, last: int) -> Mapping[str, str]:
        """Content hash of each artifact that is kept while ``last`` is the last revision of the run."""
        gone = self.until_next if self.revision < last else ()
        return {name: content for name, content in self.artifacts.items() if name not in gone}

    @property
    def tables(self) -> Mapping[str, str]:
        """Content hash of each table."""
        return cast(Mapping[str, str], self.state["tables"])

    @cached_property
    def metrics(self) -> Mapping[str, float]:
        """Metrics of ``state``."""
        return cast(Mapping[str, float], self.state["metrics"])

    @cached_property
    def rates(self) -> Mapping[str, float]:
        """Metrics of ``observed``, which are times or rates."""
        return cast(Mapping[str, float], self.observed.get("metrics", {}))

    @property
    def versions(self) -> Mapping[str, int]:
        """Version number of each table with that content."""
        return cast(Mapping[str, int], self.observed["tables"])


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write a manifest by temporary file and rename."""
    write_atomically(path, manifest.text())


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _floats(value: object, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _floats(inner, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _floats(inner, f"{name}[{index}]")
