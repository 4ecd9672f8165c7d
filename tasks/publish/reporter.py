"""Reports of a run to its user."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from coevo.lineage.revision.manifest import Manifest


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
    """Function that adds to counts by name and reports them with the current stage.

    Args:
        text: format with the names of counts, such as ``{over} of 128 episodes``.
    """
    to, name, done, adding = reporter(), _stage.get(), Counter[str](), Lock()

    def add(**more: int) -> None:
        with adding:
            done.update(more)
            to.note(f"{name}: {text.format_map(done)}")

    return add if name else lambda **_: None


def headline(manifest: "Manifest") -> str:
    """A revision in one line: its number and iteration, success rates and bank size, as far as they were measured."""
    metrics, panel = manifest.metrics, next(iter(manifest.state["config"]["evaluation"]["panels"]), None)
    known = {"training": "agent/success/train", "held out": f"agent/success/{panel}", "bank": "bank/size"}
    measured = "".join(f", {name} {round(metrics[key], 3):.12g}" for name, key in known.items() if key in metrics)
    return f"revision {manifest.revision}, iteration {manifest.iteration}{measured}"
