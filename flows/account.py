"""What a night did, in numbers: for its artifact, and for whoever is notified."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flows.history import trail
from lineage.manifest import Manifest
from tasks.waiting import waits


@dataclass(frozen=True, slots=True)
class Panel:
    """Success on a panel, before a night and in it; None where it was never played."""

    name: str
    start: float | None
    end: float | None

    def fell(self, by: float) -> bool:
        """Whether it ended more than ``by`` below its start."""
        return self.start is not None and self.end is not None and self.start - self.end > by


@dataclass(frozen=True)
class Account:
    """A night of a run.

    Attributes:
        run: its name.
        history: all its revisions up to the night's last one, without what undid them.
        start: the revision that the night went on from; 0 for a run's first night.
        reason: why it stopped before the run's last iteration, if it did.
        undone: what was rolled back and why, if it was.
    """

    run: str
    history: Sequence[Manifest]
    start: int
    reason: str | None = None
    undone: str | None = None

    @property
    def waits(self) -> bool:
        """Whether the run goes no further until a person has decided."""
        return self.undone is None and waits(self.history[-1])

    @property
    def iterations(self) -> int:
        """How many the night played."""
        return self.history[-1].iteration - self.history[self.start].iteration

    def panels(self) -> list[Panel]:
        """The panels that the run is evaluated on."""
        evaluation = self.history[-1].state["config"]["evaluation"]
        led = trail(self.history)
        before = _measured(manifest for manifest in trail(self.history[: self.start + 1]))
        after = _measured(manifest for manifest in led if manifest.revision > self.start)
        names = (*evaluation["panels"], *evaluation["final_panels"])
        return [Panel(name, before.get(name), after.get(name)) for name in names if name in before or name in after]

    def subject(self) -> str:
        """One line."""
        if self.undone is not None:
            return f"coevo: {self.run} was rolled back to revision {self.start}"
        if self.waits:
            return f"coevo: {self.run} waits for approval"
        return f"coevo: {self.run} played {self.iterations} iterations"

    def body(self) -> str:
        """Markdown that can be read as it is."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        head = self.history[-1]
        goal = head.state["config"]["iterations"]
        yield f"Run {self.run}: revision {self.start} to {head.revision}, {self.iterations} iterations this night."
        if self.undone is None:
            yield f"It stands at iteration {head.iteration} of {goal}."
        if self.waits:
            name = f"{self.run}@{head.revision}"
            yield f"It waits for a person: `coevo approve {name}` or `coevo approve {name} --reject`."
        for said in (self.undone, None if self.waits else self.reason and f"Stopped early: {self.reason}."):
            if said:
                yield said
        yield ""
        yield "| panel | before | after |"
        yield "|---|---|---|"
        for panel in self.panels():
            yield f"| {panel.name} | {_shown(panel.start)} | {_shown(panel.end)} |"


def _measured(manifests: Iterator[Manifest]) -> dict[str, float]:
    """By panel, the last success that these revisions tell."""
    return {
        name.removeprefix("success/"): value
        for manifest in manifests
        for name, value in manifest.state["metrics"].items()
        if name.startswith("success/")
    }


def _shown(success: float | None) -> str:
    return "not played" if success is None else f"{success:.3f}"
