"""Status of a run: a word, a stage and a reason. The command line, MLflow, Prefect and the report show the same three.

The process that runs the loop writes its stage to a file of the run. What it could not write when it was killed follows
from that file, the run's lock and its last revision.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import RunPaths
from coevo.utilities.errors import CoevoError
from coevo.utilities.system_faults import fault

NAME = "status.json"
MAX_CHARS = 300
"""Most characters of a reason."""
PREPARATION, WARM_START, FIRST_EVALUATION = "preparation", "warm start", "first evaluation"


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Status of a run.

    Attributes:
        status: ``running``: a process runs its loop. ``waiting``: for a person's approval. ``finished``: all iterations
            are done. ``stopped``: it ended in order before its last iteration. ``failed``: an error ended it.
            ``crashed``: its process was killed. ``new``: no process has started it. ``faulty``: it cannot be read.
        stage: what it does, or where it ended: ``iteration 3 of 40``; None if it never began, or is unknown.
        reason: why it does not run, in one line; None while it does.
    """

    status: str
    stage: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.status, self.stage, self.reason)))


@dataclass(frozen=True, slots=True)
class LoopRecord:
    """The loop of a run, as its process recorded it.

    Attributes:
        stage: what it did last.
        revision: the revision that it worked on.
        end: ``stopped`` or ``failed``; None while the process runs, or if it was killed.
        reason: why it ended; None if all iterations were done.
        process: id of the process.
    """

    stage: str
    revision: int = 0
    end: str | None = None
    reason: str | None = None
    process: int = 0

    def ended(self, error: BaseException | None) -> "LoopRecord":
        """The same after the loop ended, in order or by an exception."""
        if error is None:
            return replace(self, end="stopped")
        if not isinstance(error, Exception):
            return replace(self, end="stopped", reason="interrupted")
        return replace(self, end="failed", reason=_line(error))


def does_loop(record: LoopRecord | None, holder: str) -> bool:
    """Report whether the process that holds a run's lock (``coevo.lineage.lock.holder``) runs its loop.

    Another one is a command, such as ``gc``. Without a record, the loop is about to write one.
    """
    if record is None:
        return True
    return record.end is None and str(record.process) == holder.partition(" ")[0]


@contextmanager
def recording_status(paths: RunPaths) -> Iterator[None]:
    """Record the status of a run within; call it while holding the writer's lock."""
    record_stage(paths, PREPARATION)
    try:
        yield
    except BaseException as error:
        _write(paths, last_record(paths).ended(error))
        raise
    _write(paths, last_record(paths).ended(None))


def record_stage(paths: RunPaths, stage: str, revision: int = 0) -> None:
    """Record the stage that begins, and the revision that it works on, for other processes."""
    _write(paths, LoopRecord(stage, revision, process=os.getpid()))


def record_reason(paths: RunPaths, reason: str | None) -> None:
    """Record why the loop ends before the last iteration; None if it does not."""
    _write(paths, replace(last_record(paths), reason=reason))


def last_record(paths: RunPaths) -> LoopRecord:
    """Record of the loop in this process."""
    return read_record(paths) or LoopRecord(PREPARATION)


def _write(paths: RunPaths, record: LoopRecord) -> None:
    """Replace the file; a power failure may lose it, and with it a stage."""
    fresh = paths.root / f".{NAME}.new"
    fresh.write_text(json.dumps(asdict(record)) + "\n", encoding="utf-8")
    fresh.replace(paths.root / NAME)


def read_record(paths: RunPaths) -> LoopRecord | None:
    """Record of the last process that ran the loop; None if there was none, or its file is damaged."""
    try:
        found = LoopRecord(**json.loads((paths.root / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    texts = (found.stage, found.end or "", found.reason or "")
    numbers = (found.revision, found.process)
    is_sound = all(type(number) is int for number in numbers) and all(isinstance(text, str) for text in texts)
    return found if is_sound else None


def waits(head: Manifest | None) -> bool:
    """Return True if the run stops at this revision until a person has decided."""
    return head is not None and bool(head.state.get("waiting", False))


def iteration_stage(iteration: int, config: Mapping[str, Any]) -> str:
    """Stage of an iteration, counted from 1, of a run with this configuration."""
    return f"iteration {min(iteration, config['iterations'])} of {config['iterations']}"


def status_of(name: str, iterations: int, head: Manifest | None, record: LoopRecord | None) -> RunStatus:
    """Status of a run that no process writes to.

    Args:
        name: name of the run.
        iterations: number of iterations that it is to do.
        head: its last revision.
        record: of the last process that ran its loop.
    """
    done = None if head is None else f"iteration {head.iteration} of {iterations}"
    if waits(head):
        assert head is not None
        return RunStatus("waiting", f"approval of revision {head.revision}", _how_to_decide(name, head))
    if head is not None and head.iteration >= iterations:
        return RunStatus("finished", done, f"all {iterations} iterations are done")
    if head is not None and (reason := _by_hand(head, record)):
        return RunStatus("new" if record is None and "branched_from" in head.observed else "stopped", done, reason)
    if record is None:
        return RunStatus("new" if head is None else "stopped", done, "no process has run it in this workspace")
    return _as_recorded(record, done, iterations)


def _as_recorded(record: LoopRecord, done: str | None, iterations: int) -> RunStatus:
    """Status of a run that its own loop left before its last iteration."""
    if record.end is None:
        return RunStatus("crashed", record.stage, "its process was killed")
    if record.end == "failed":
        return RunStatus("failed", record.stage, record.reason)
    return RunStatus(
        "stopped", done or record.stage, record.reason or f"fewer than {iterations} iterations were asked for"
    )


def _by_hand(head: Manifest, record: LoopRecord | None) -> str | None:
    """Command that made the last revision after the loop had ended; None if the loop made it, or began after it."""
    if record is not None and head.revision < record.revision:
        return None
    if (origin := head.observed.get("branched_from")) is not None:
        return f"branched from {origin['run']}@{origin['revision']}"
    if head.restored_from is not None:
        return f"rolled back to revision {head.restored_from}"
    if "approval" in head.state:
        return f"revision {head.state['approval']['revision']} was decided"
    if "retired" in head.state:
        return f"entry {head.state['retired']['entry']} was retired"
    return "entries were imported" if "bank/imported" in head.metrics else None


def _how_to_decide(name: str, head: Manifest) -> str:
    return f"revision {head.revision} waits for approval: coevo approve {name}@{head.revision} [--reject]"


def _line(error: Exception) -> str:
    text = str(error) if isinstance(error, CoevoError) else fault(error) or f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:MAX_CHARS]
