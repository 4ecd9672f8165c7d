"""Runs side by side: what was set differently, and how far success differs, at the end and at equal expense."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain
from statistics import mean, stdev
from typing import Any

from flows.reference import Reading, reading
from flows.sides import Evaluated, Side, side
from flows.spending import KINDS
from lineage.workspace import Workspace

END = "end"
"""Compared where either side was last evaluated, whatever it had spent."""
NEAR = 0.5
"""Share of the more frugal side's expense that a side must have spent to be compared as equal to it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Success of one side minus that of the first, on one panel.

    Attributes:
        equal: what both sides had spent at most the same of: ``episodes``, ``tokens`` or ``seconds``; else ``end``.
        panel: what was played.
        run: the one side.
        against: the first side.
        budget: what neither side may have spent more of; None at the end.
        revision: whose evaluation counts; ``against_revision`` that of the first side.
        spent: what had been spent at it; None at the end, where kinds are not told apart.
        success: there; ``against_success`` that of the first side.
        difference: between the two; ``low`` and ``high`` bound its 95 % interval over ``tasks`` paired tasks, None
            where tasks differ or are not known.
    """

    equal: str
    panel: str
    run: str
    against: str
    budget: float | None
    revision: int
    against_revision: int
    spent: float | None
    against_spent: float | None
    success: float
    against_success: float
    difference: float
    low: float | None
    high: float | None
    tasks: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sides in the order they were named, and the differences of the others from the first."""

    sides: tuple[Side, ...]
    differences: tuple[Difference, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sides."""
        return tuple(side.name for side in self.sides)

    def settings(self) -> dict[str, dict[str, Any]]:
        """Settings that are not the same everywhere: value by side, left out where a side has no such setting."""
        keys = dict.fromkeys(chain.from_iterable(side.settings for side in self.sides))
        values = {key: {side.name: side.settings[key] for side in self.sides if key in side.settings} for key in keys}
        return {key: found for key, found in values.items() if not self._agree(found)}

    def success_rows(self) -> list[dict[str, Any]]:
        """Success by panel where each side was last evaluated, one row each."""
        ends = {side.name: {each.panel: each.success for each in side.end} for side in self.sides}
        panels = dict.fromkeys(chain.from_iterable(ends.values()))
        return [{"panel": panel, **{name: end.get(panel) for name, end in ends.items()}} for panel in panels]

    def uncounted(self) -> list[str]:
        """Kinds of expense that cannot be equalled, since a side does not say."""
        ends = [each.spent for side in self.sides for each in side.end]
        return [kind for kind in KINDS if any(spent.of(kind) is None for spent in ends)]

    def apart(self) -> list[str]:
        """Panels that runs were compared on at the end, and were not evaluated on near equal expense."""
        if len({side.run for side in self.sides}) == 1:
            return []
        equal = {each.panel for each in self.differences if each.equal != END}
        return [panel for panel in dict.fromkeys(each.panel for each in self.differences) if panel not in equal]

    def document(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "runs": [_told(side) for side in self.sides],
            "settings": self.settings(),
            "differences": [asdict(difference) for difference in self.differences],
        }

    def _agree(self, values: dict[str, Any]) -> bool:
        first, *others = values.values()
        return len(values) == len(self.sides) and all(value == first for value in others)


def compared(references: Sequence[str], place: Workspace) -> Comparison:
    """Compare what ``RUN``, ``RUN@N`` and ``RUN@TAG`` name.

    Raises:
        CoevoError: one of them is malformed or not there.
    """
    with ExitStack() as stack:
        return compare([stack.enter_context(reading(text, place)) for text in references])


def compare(readings: Sequence[Reading]) -> Comparison:
    """Compare runs where each was last evaluated, and where each had spent as much as the others."""
    first, *others = (side(opened) for opened in readings)
    return Comparison((first, *others), tuple(chain.from_iterable(differences_of(other, first) for other in others)))


def _told(side: Side) -> dict[str, Any]:
    last = side.end[0] if side.end else None
    return {
        "run": side.name,
        "evaluated": last and last.revision,
        "success": {each.panel: each.success for each in side.end},
        "spent": last and asdict(last.spent),
    }


def differences_of(one: Side, first: Side) -> Iterator[Difference]:
    """One side minus the first: at the end, then at equal expense."""
    there = {each.panel: each for each in first.end}
    for here in one.end:
        if here.panel in there:
            yield _difference(END, None, (one, here), (first, there[here.panel]))
    for kind in KINDS:
        for panel in dict.fromkeys(each.panel for each in one.evaluations):
            yield from _at_equal(kind, panel, one, first)


def _at_equal(kind: str, panel: str, one: Side, first: Side) -> Iterator[Difference]:
    """The last evaluations within what the more frugal side had spent at its last.

    None where that is unknown, or where one had then spent far less; none of a revision with itself.
    """
    latest = [last for last in (one.latest(panel), first.latest(panel)) if last is not None]
    spent = [cost for last in latest if (cost := last.spent.of(kind)) is not None]
    if len(spent) < 2:
        return
    budget = min(spent)
    here, there = one.within(panel, kind, budget), first.within(panel, kind, budget)
    if here is None or there is None or (one.run, here.revision) == (first.run, there.revision):
        return
    if all((each.spent.of(kind) or 0) >= NEAR * budget for each in (here, there)):
        yield _difference(kind, budget, (one, here), (first, there))


def _difference(
    equal: str, budget: float | None, one: tuple[Side, Evaluated], first: tuple[Side, Evaluated]
) -> Difference:
    (side, here), (other, there) = one, first
    low, high, tasks = _paired(here, there)
    return Difference(
        equal=equal,
        panel=here.panel,
        run=side.name,
        against=other.name,
        budget=budget,
        revision=here.revision,
        against_revision=there.revision,
        spent=None if equal == END else here.spent.of(equal),
        against_spent=None if equal == END else there.spent.of(equal),
        success=here.success,
        against_success=there.success,
        difference=here.success - there.success,
        low=low,
        high=high,
        tasks=tasks,
    )


def _paired(here: Evaluated, there: Evaluated) -> tuple[float | None, float | None, int | None]:
    """Normal 95 % interval of the mean difference over tasks; nothing where tasks differ or are not known."""
    mine, theirs = here.outcomes, there.outcomes
    if mine is None or theirs is None or here.panel_hash != there.panel_hash or len(mine) < 2:
        return None, None, None
    gains = [int(a) - int(b) for a, b in zip(mine, theirs, strict=True)]
    half = 1.96 * stdev(gains) / len(gains) ** 0.5
    return mean(gains) - half, mean(gains) + half, len(gains)
