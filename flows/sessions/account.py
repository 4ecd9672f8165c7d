"""Summary of a session, for its artifact and its notification."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coevo.flows.history.history import trail
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import waits


@dataclass(frozen=True, slots=True)
class PanelSuccess:
    """Success on a panel, before a session and at its end; None if it was not played."""

    name: str
    start: float | None
    end: float | None

    def fell(self, by: float) -> bool:
        """Return True if success dropped by more than ``by``."""
        return self.start is not None and self.end is not None and self.start - self.end > by


@dataclass(frozen=True)
class Account:
    """Summary of a session.

    Attributes:
        run: name of the run.
        history: all revisions of the run up to the session's last one, without a rollback of the session.
        start: revision that the session continued from; 0 for a run's first session.
        reason: reason to stop before the run's last iteration, or None.
        undone: description of the rollback, or None.
    """

    run: str
    history: Sequence[Manifest]
    start: int
    reason: str | None = None
    undone: str | None = None

    @property
    def waits(self) -> bool:
        """True if the run is pending approval."""
        return self.undone is None and waits(self.history[-1])

    @property
    def iterations(self) -> int:
        """Number of iterations of the session."""
        return self.history[-1].iteration - self.history[self.start].iteration

    def panels(self) -> list[PanelSuccess]:
        """Success on the panels that the run is evaluated on."""
        evaluation = self.history[-1].state["config"]["evaluation"]
        led = trail(self.history)
        before = _measured(manifest for manifest in trail(self.history[: self.start + 1]))
        after = _measured(manifest for manifest in led if manifest.revision > self.start)
        names = (*evaluation["panels"], *evaluation["final_panels"])
        return [
            PanelSuccess(name, before.get(name), after.get(name)) for name in names if name in before or name in after
        ]

    def subject(self) -> str:
        """Summary in one line."""
        if self.undone is not None:
            return f"coevo: {self.run} was rolled back to revision {self.start}"
        if self.waits:
            return f"coevo: {self.run} waits for approval"
        return f"coevo: {self.run} played {self.iterations} iterations"

    def body(self) -> str:
        """Summary in Markdown, readable without rendering."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        head = self.history[-1]
        goal = head.state["config"]["iterations"]
        yield f"Run {self.run}: revision {self.start} to {head.revision}, {self.iterations} iterations this session."
        if self.undone is None:
            yield f"Iteration {head.iteration} of {goal}."
        if self.waits:
            name = f"{self.run}@{head.revision}"
            yield f"It waits for approval: `coevo approve {name}` or `coevo approve {name} --reject`."
        for said in (self.undone, None if self.waits else self.reason and f"Stopped early: {self.reason}."):
            if said:
                yield said
        yield from self._table()

    def _table(self) -> Iterator[str]:
        yield ""
        yield "| panel | before | after |"
        yield "|---|---|---|"
        for panel in self.panels():
            yield f"| {panel.name} | {_shown(panel.start)} | {_shown(panel.end)} |"


def _measured(manifests: Iterator[Manifest]) -> dict[str, float]:
    """Last success per panel in these revisions."""
    return {
        name.removeprefix("agent/success/"): value
        for manifest in manifests
        for name, value in manifest.metrics.items()
        if name.startswith("agent/success/")
    }


def _shown(success: float | None) -> str:
    return "not played" if success is None else f"{success:.3f}"
