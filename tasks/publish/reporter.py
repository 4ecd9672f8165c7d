"""Reports of a run to its user, and to other processes.

A recorder keeps the phases of the iteration in progress in a small file of the run, which may be read at any time.
Push, fsck and gc leave the file out. It is replaced at most four times a second, and means nothing without a process
that holds the run's lock.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from coevo.lineage.revision.manifest import Manifest
    from coevo.lineage.workspace import RunPaths


@runtime_checkable
class Reporter(Protocol):
    """Receiver of reports: the command line shows them; a scheduled run logs them."""

    def note(self, text: str) -> None:
        """Report progress, from any thread; a later note replaces it.

        Args:
            text: ``stage`` or ``stage: how far it is``; empty between two stages.
        """
        ...

    def warn(self, text: str) -> None:
        """Report a problem that does not stop the run."""
        ...

    def revision(self, manifest: "Manifest") -> None:
        """Report a committed revision."""
        ...


class Silent:
    """Reporter that ignores everything."""

    def note(self, text: str) -> None:
        """Ignore the note."""

    def warn(self, text: str) -> None:
        """Ignore the warning."""

    def revision(self, manifest: "Manifest") -> None:
        """Ignore the revision."""


_reporter: ContextVar[Reporter] = ContextVar("reporter")
_stage: ContextVar[str] = ContextVar("stage", default="")


@contextmanager
def reporting_to(reporter: Reporter) -> Iterator[None]:
    """Make ``reporter`` the receiver of the reports of flows within."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)


def reporter() -> Reporter:
    """Receiver of reports at this place; ``Silent`` if none is set."""
    return _reporter.get(Silent())


@contextmanager
def in_stage(name: str) -> Iterator[None]:
    """Report a stage, from its start to its end; ``counting`` within names it."""
    token = _stage.set(name)
    try:
        reporter().note(name)
        yield
    finally:
        _stage.reset(token)
        reporter().note(_stage.get())


def counting(text: str) -> Callable[..., None]:
    """Function that adds to counts by name and reports them with the current stage; of seconds it keeps the most.

    Args:
        text: format with the names of counts and seconds, such as ``{over} of 128 episodes, slowest {slowest:.1f} s``.
    """
    to, name, done, most, adding = reporter(), _stage.get(), Counter[str](), dict[str, float](), Lock()

    def add(**more: float) -> None:
        with adding:
            for key, value in more.items():
                if isinstance(value, int):
                    done[key] += value
                else:
                    most[key] = max(value, most.get(key, 0.0))
            to.note(f"{name}: {text.format_map(defaultdict[str, float](int, {**done, **most}))}")

    return add if name else lambda **_: None


def headline(manifest: "Manifest") -> str:
    """A revision in one line: its number and iteration, success rates and bank size, as far as they were measured."""
    metrics, panel = manifest.metrics, next(iter(manifest.state["config"]["evaluation"]["panels"]), None)
    known = {"training": "agent/success/train", "held out": f"agent/success/{panel}", "bank": "bank/size"}
    measured = "".join(f", {name} {round(metrics[key], 3):.12g}" for name, key in known.items() if key in metrics)
    return f"revision {manifest.revision}, iteration {manifest.iteration}{measured}"


NAME = "phases.json"
WRITE_INTERVAL_S = 0.25
"""Least seconds between two writes."""
MAX_PHASES = 40
"""Most phases that are kept, the latest ones."""
MAX_TEXT_CHARS = 200
"""Most characters of a name or a text."""
MAX_BYTES = 64 * 1024
"""Most bytes of the file that are read."""


@dataclass(frozen=True, slots=True)
class LivePhase:
    """A stage as it was last reported.

    Attributes:
        name: the stage: ``r12 rollout``.
        text: how far it is; its name where it does not say.
        began: time of its first report, in seconds since 1970.
        seen: time of its latest report.
    """

    name: str
    text: str
    began: float
    seen: float


@dataclass(frozen=True, slots=True)
class LivePhases:
    """Phases of a run that a process works on.

    Attributes:
        current: text of the current stage; empty between two.
        phases: stages since the revision before, oldest first.
        warnings: the latest warnings.
        at: time of the latest report, in seconds since 1970.
    """

    current: str = ""
    phases: tuple[LivePhase, ...] = ()
    warnings: tuple[str, ...] = ()
    at: float = 0.0


@dataclass
class _Noted:
    current: str = ""
    phases: dict[str, LivePhase] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class PhaseRecorder:
    """Reporter that passes reports on, and keeps the phases in the file.

    Args:
        paths: of the run.
        beside: reporter that gets every report.
        clock: seconds since 1970.
    """

    def __init__(self, paths: "RunPaths", beside: Reporter, clock: Callable[[], float] = time.time) -> None:
        self._paths, self._beside, self._clock = paths, beside, clock
        self._noted, self._lock = _Noted(), Lock()
        self._fresh, self._ends = Event(), Event()
        self._writer = Thread(target=self._write_on, name="phases", daemon=True)
        self._writer.start()

    def note(self, text: str) -> None:
        """Report progress."""
        with self._lock:
            self._noted.current = text[:MAX_TEXT_CHARS]
            if text:
                now, name = self._clock(), text.partition(":")[0][:MAX_TEXT_CHARS]
                before = self._noted.phases.get(name)
                self._noted.phases[name] = LivePhase(
                    name, text[:MAX_TEXT_CHARS], now if before is None else before.began, now
                )
                for old in list(self._noted.phases)[:-MAX_PHASES]:
                    del self._noted.phases[old]
        self._fresh.set()
        self._beside.note(text)

    def warn(self, text: str) -> None:
        """Report a problem that does not stop the run."""
        with self._lock:
            self._noted.warnings = [*self._noted.warnings[-4:], text[:MAX_TEXT_CHARS]]
        self._fresh.set()
        self._beside.warn(text)

    def revision(self, manifest: "Manifest") -> None:
        """Report a committed revision, whose phases are over."""
        with self._lock:
            later = self._noted.phases.values()
            done = f"r{manifest.revision} "
            self._noted.phases = {each.name: each for each in later if not each.name.startswith(done)}
        self._fresh.set()
        self._beside.revision(manifest)

    def close(self) -> None:
        """End the writing."""
        self._ends.set()
        self._fresh.set()
        self._writer.join()

    def _write_on(self) -> None:
        while not self._ends.is_set():
            self._fresh.wait()
            self._fresh.clear()
            try:
                self._write()
            except OSError:
                return  # a full disk is the run's to report
            self._ends.wait(WRITE_INTERVAL_S)

    def _write(self) -> None:
        """Replace the file; a power failure may lose it."""
        with self._lock:
            noted = self._noted
            found = LivePhases(noted.current, tuple(noted.phases.values()), tuple(noted.warnings), self._clock())
        fresh = self._paths.root / f".{NAME}.new"
        fresh.write_text(json.dumps(asdict(found)) + "\n", encoding="utf-8")
        fresh.replace(self._paths.root / NAME)


@contextmanager
def recording_phases(paths: "RunPaths", beside: Reporter) -> Iterator[Reporter]:
    """Record the phases of a run that are reported within; call it while holding the writer's lock."""
    recorder = PhaseRecorder(paths, beside)
    try:
        with reporting_to(recorder):
            yield recorder
    finally:
        recorder.close()


def read_phases(paths: "RunPaths") -> LivePhases | None:
    """Phases of a run, which mean something only while a process holds its lock; None if the file is no such record."""
    try:
        with (paths.root / NAME).open("rb") as opened:
            found = json.loads(opened.read(MAX_BYTES).decode(errors="replace"))
        phases = tuple(
            LivePhase(str(one["name"]), str(one["text"]), float(one["began"]), float(one["seen"]))
            for one in found["phases"][-MAX_PHASES:]
        )
        warnings = tuple(str(each) for each in found["warnings"][-5:])
        return LivePhases(str(found["current"]), phases, warnings, float(found["at"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
