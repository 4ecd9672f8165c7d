"""The workspace: paths of everything on disk.

<workspace>/runs/<run>/bank  lineage  staging  writing.jsonl  lock  published.json  overrides.json  log
<workspace>/cache            artifacts of all runs, warm-started policies
<workspace>/scratch          temporary files of commands
<workspace>/tables           tables of tasks that were given as rows
<workspace>/gateway          secret of the gateways; sessions that ended, by run
<workspace>/mlflow.db  mlartifacts  prefect  mlflow  servers.json  runs.lock  studies/<study>.lock
<workspace>/trusted.json  packages.json  weights.json
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from coevo.lineage.atomic_files import check_file_system, make_private, remove, write_atomically
from coevo.lineage.lock import in_use, runs_lock, was_used, writer_lock
from coevo.lineage.names import RUN
from coevo.lineage.packages import Packages
from coevo.lineage.trust import Trust
from coevo.utilities.errors import CoevoError, unknown

if TYPE_CHECKING:
    from coevo.configs.run_config import RunConfig

UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}")
MAX_TIME_DIGITS = 19
"""Maximum digits of a time in ns since 1970 until the year 2286."""
CALLS = "calls"
"""Folder of an engine's ledger of calls."""
OVERRIDES, MAX_OVERRIDES_BYTES = "overrides.json", 2**20
LATEST = 5
"""Number of runs that the error for an unknown one names."""


@dataclass(frozen=True)
class RunPaths:
    """Files of one run."""

    root: Path

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.root.name

    @property
    def workspace(self) -> "Workspace":
        """Workspace of the run."""
        return Workspace(self.root.parents[1])

    @property
    def bank(self) -> Path:
        """Directory of the bank's tables."""
        return self.root / "bank"

    @property
    def lineage(self) -> Path:
        """Git and DVC repository."""
        return self.root / "lineage"

    @property
    def staging(self) -> Path:
        """Directory of a revision's artifacts before they are committed."""
        return self.root / "staging"

    @property
    def journal(self) -> Path:
        """Journal of the answers of the writer model, before they are committed."""
        return self.root / "writing.jsonl"

    @property
    def scratch(self) -> Path:
        """Directory of artifacts materialised for this session."""
        return self.root / "scratch"

    @property
    def reference(self) -> Path:
        """Reference policy of the KL term."""
        return self.scratch / "reference"

    @property
    def quarantine(self) -> Path:
        """Directory of batches that failed a gate."""
        return self.root / "quarantine"

    @property
    def lock(self) -> Path:
        """Lock of the writer."""
        return self.root / "lock"

    @property
    def published(self) -> Path:
        """Cursor of published revisions."""
        return self.root / "published.json"

    @property
    def log(self) -> Path:
        """Log of the run."""
        return self.root / "log"

    @property
    def engine(self) -> Path:
        """Weights and logs of the generating servers."""
        return self.root / "engine"

    @property
    def created(self) -> Path:
        """File with the creation time of the run: file times do not survive a copy."""
        return self.root / "created"

    @property
    def moment(self) -> int:
        """Creation time of the run, in ns since 1970.

        Raises:
            CoevoError: its file has no such time.
        """
        said = self.created.read_text(encoding="utf-8", errors="replace").strip()
        if not (said.isdecimal() and len(said) <= MAX_TIME_DIGITS):
            raise CoevoError(f"{self.created}: {said[:20]!r} is not a time in ns: see `coevo fsck {self.name}`")
        return int(said)

    def check_created(self) -> None:
        """Check that the file ``created`` has a time.

        Raises:
            CoevoError: it has none.
        """
        _ = self.moment

    @property
    def config(self) -> Path:
        """Resolved configuration as JSON."""
        return self.root / "config.json"

    @property
    def overrides(self) -> tuple[str, ...]:
        """Settings that its command gave beside the recipe, ``KEY=VALUE``; empty where none were recorded.

        They explain a run and decide nothing: ``config`` has the resolved values.
        """
        try:
            with (self.root / OVERRIDES).open("rb") as file:
                given = json.loads(file.read(MAX_OVERRIDES_BYTES))
        except (OSError, ValueError, RecursionError):
            return ()
        return tuple(str(each) for each in given) if isinstance(given, list) else ()

    def record_overrides(self, given: Sequence[str]) -> None:
        """Record them, once the run is created."""
        write_atomically(self.root / OVERRIDES, json.dumps(list(given)) + "\n")

    @property
    def is_blank(self) -> bool:
        """True if nothing of the run was ever committed, and no answer that was paid is kept; never for a link."""
        kept = (
            self.journal,
            self.published,
            *(self.engine / CALLS).glob("*"),
            *(self.lineage / ".git" / "objects").rglob("*"),
        )
        return not self.root.is_symlink() and not any(path.is_file() for path in kept)

    def read_config(self) -> "RunConfig":
        """Configuration for the run's next session.

        Raises:
            CoevoError: the file does not exist, or is not a valid configuration.
        """
        from coevo.configs.load.load import validate

        try:
            settings = json.loads(self.config.read_text(encoding="utf-8"))
        except OSError as error:
            raise CoevoError(f"{self.config}: {error.strerror}: see `coevo fsck {self.name}`") from None
        except (ValueError, RecursionError) as error:
            raise CoevoError(f"{self.config}: not readable as JSON: {error}") from None
        return validate(settings, source=str(self.config))

    def write_config(self, config: "RunConfig") -> None:
        """Replace the configuration, for example by one with more iterations."""
        write_atomically(self.config, config.model_dump_json(indent=1) + "\n")

    def clear_staging(self) -> None:
        """Remove everything that an earlier session staged or materialised."""
        for path in (self.staging, self.scratch):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)


@dataclass(frozen=True)
class Workspace:
    """The directory with all runs. A relative path is resolved once, from the current working directory.

    Raises:
        CoevoError: its path has a question mark, after which a database's URI has options and no path.
    """

    root: Path

    def __post_init__(self) -> None:
        # Git and DVC work in their own directories, from which a relative path would lead elsewhere.
        object.__setattr__(self, "root", self.root.absolute())
        if "?" in os.path.realpath(self.root):
            raise CoevoError(
                f"{self.root}: a workspace with '?' in its path would have its databases outside it: name another"
            )

    @property
    def cache(self) -> Path:
        """Artifacts of all runs."""
        return self.root / "cache"

    @property
    def warmstarts(self) -> Path:
        """Warm-started policies by the hash of what decides them."""
        return self.cache / "warmstarts"

    @property
    def trust(self) -> Trust:
        """Settings that a user has confirmed."""
        return Trust(self.root)

    @property
    def packages(self) -> Packages:
        """Packages that this workspace made."""
        return Packages(self.root)

    def directories(self) -> list[RunPaths]:
        """Every directory or link in ``runs/`` with a valid run name, by name; it may lack any file."""
        found = sorted((self.root / "runs").glob("*"))
        return [RunPaths(path) for path in found if RUN.fullmatch(path.name) and (path.is_dir() or path.is_symlink())]

    def runs(self) -> list[RunPaths]:
        """Runs in the order of their creation; one without a valid creation time is left out."""
        made = [(moment, run.name) for run in self.directories() if (moment := _moment(run)) is not None]
        return [RunPaths(self.root / "runs" / name) for _, name in sorted(made)]

    def run(self, name: str) -> RunPaths:
        """Paths of a run with this name, existing or not.

        Raises:
            CoevoError: the name is not a valid run name.
        """
        if not RUN.fullmatch(name):
            raise CoevoError(
                f"{name!r} cannot name a run: use letters, digits, '.', '_' and '-', at most 100, no '..', "
                "and no '.' or '-' at the beginning"
            )
        return RunPaths(self.root / "runs" / name)

    def existing(self, name: str) -> RunPaths:
        """Paths of an existing run.

        Raises:
            CoevoError: the run does not exist, or has no creation time.
        """
        run = self.run(name)
        if not run.created.is_file():
            raise self.no_run(name)
        run.check_created()
        return run

    def no_run(self, name: str) -> CoevoError:
        """Error for a run that does not exist, with the name that a user may have meant and the latest runs."""
        known = [run.name for run in self.runs()]
        remedy = "There are none yet: start one with `coevo run`"
        if known:
            remedy = f"`coevo runs` lists them; the latest are {', '.join(known[-LATEST:])}"
        return CoevoError(unknown("run", name, known, f"{remedy} ({self.root})"))

    def check_vacant(self, name: str) -> None:
        """Check that a new run may have this name. It may replace a run that ended before its first revision.

        Raises:
            CoevoError: the name is invalid or taken.
        """
        run = self.run(name)
        if os.path.lexists(run.root) and not (run.is_blank and was_used(run) and not in_use(run)):
            remedy = "wait until the process that works on it ends" if in_use(run) else "resume it"
            raise CoevoError(f"run {name!r} is already in {self.root}: {remedy}, or choose another name")

    def create(self, name: str, config: "RunConfig") -> RunPaths:
        """Create a run; of two processes with the same name, one succeeds. Its settings count as confirmed.

        Its number of threads is chosen now, unless the settings have one.

        Raises:
            CoevoError: the name is invalid or taken, or the workspace cannot be written to.
        """
        from coevo.configs.threads import with_threads
        from coevo.configs.trust_settings import chosen

        with self.staged(name, with_threads(config)):
            self.trust.begin(name, chosen(config))
            return self.run(name)

    @contextmanager
    def staged(self, name: str, config: "RunConfig") -> Iterator[RunPaths]:
        """Prepare a new run, which joins the others at the end of the block; a failure leaves nothing behind.

        Raises:
            CoevoError: the name is invalid or taken, or the workspace cannot be written to.
        """
        run = self.run(name)
        fresh = RunPaths(run.root.with_name(f".{name}.{token_hex(4)}"))
        try:
            make_private(self.root)
            check_file_system(self.root)
            run.root.parent.mkdir(exist_ok=True)
            with runs_lock(self.root):
                self.check_vacant(name)
                fresh.root.mkdir()
                fresh.created.write_text(f"{self._moment()}\n", encoding="utf-8")
                fresh.write_config(config)
                yield fresh
                self._join(fresh, run)
        except OSError as error:
            raise CoevoError(f"{self.root}: {error.strerror}: name another directory with --workspace") from None
        finally:
            shutil.rmtree(fresh.root, ignore_errors=True)

    def _join(self, fresh: RunPaths, run: RunPaths) -> None:
        """Move a new run to its place, and remove a run that failed to start from there."""
        with writer_lock(run) if os.path.lexists(run.root) else nullcontext():
            if not run.is_blank:
                raise CoevoError(f"run {run.name!r} was continued meanwhile: choose another name")
            remove(run.root, self.root / "runs")
            fresh.root.rename(run.root)

    def clear_unfinished(self) -> None:
        """Remove unfinished runs of killed processes. Call it only under the runs' lock."""
        for path in (self.root / "runs").glob(".*"):
            if UNFINISHED.fullmatch(path.name):
                remove(path, self.root / "runs")

    def _moment(self) -> int:
        """Current time in ns since 1970, at least 1 ns after the latest run, so that a reset clock keeps the order."""
        latest = self.runs()[-1:]
        return max([time.time_ns(), *(run.moment + 1 for run in latest)])

    def next_name(self, recipe: str) -> str:
        """``<recipe>-<n>``, with n above that of every existing run."""
        pattern = re.compile(re.escape(recipe) + r"-(\d+)")
        taken = [int(found[1]) for run in self.directories() if (found := pattern.fullmatch(run.name))]
        return f"{recipe}-{max(taken, default=0) + 1}"


def _moment(run: RunPaths) -> int | None:
    try:
        return run.moment
    except (CoevoError, OSError):
        return None
