"""Runs side by side: what was set differently, and how far held-out success differs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from statistics import mean, stdev
from typing import Any

from flows import history
from flows.reference import Reading
from lineage.code import flat


@dataclass(frozen=True, slots=True)
class Side:
    """One of the runs compared.

    Attributes:
        name: ``RUN@N`` as read.
        evaluated: the revision whose evaluation is compared, the last one on the way to N; None without any.
        settings: resolved configuration by dotted key, and the code revision.
        success: success by panel.
        panels: hash of each panel, equal where the tasks are.
        outcomes: by panel ``1`` or ``0`` for each task, in the order of the panel.
    """

    name: str
    evaluated: int | None
    settings: dict[str, Any]
    success: dict[str, float]
    panels: dict[str, str]
    outcomes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """Success of one side minus that of the first, on one panel; ``low`` and ``high`` bound the 95 % interval."""

    run: str
    against: str
    panel: str
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
        """Success by panel, one row each."""
        panels = dict.fromkeys(chain.from_iterable(side.success for side in self.sides))
        return [{"panel": name, **{side.name: side.success.get(name) for side in self.sides}} for name in panels]

    def sentences(self) -> list[str]:
        """The differences in words."""
        return [_sentence(difference) for difference in self.differences]

    def document(self) -> dict[str, Any]:
        """All of it as JSON values."""
        sides = [{"run": side.name, "evaluated": side.evaluated, "success": side.success} for side in self.sides]
        differences = [asdict(difference) for difference in self.differences]
        return {"runs": sides, "settings": self.settings(), "differences": differences}

    def _agree(self, values: dict[str, Any]) -> bool:
        first, *others = values.values()
        return len(values) == len(self.sides) and all(value == first for value in others)


def compare(readings: Sequence[Reading]) -> Comparison:
    """Compare runs where each was last evaluated."""
    first, *others = (_side(opened) for opened in readings)
    return Comparison((first, *others), tuple(chain.from_iterable(_differences(other, first) for other in others)))


def _side(opened: Reading) -> Side:
    state = opened.manifest.state
    settings = flat(state["config"]) | {"code": state["code"][:12]}
    last = history.evaluated(opened.history)
    if last is None:
        return Side(opened.name, None, settings, {}, {}, {})
    success = {panel: last.state["metrics"][f"success/{panel}"] for panel in last.state["panels"]}
    return Side(opened.name, last.revision, settings, success, last.state["panels"], last.state.get("outcomes", {}))


def _differences(side: Side, first: Side) -> list[Difference]:
    return [
        Difference(side.name, first.name, panel, success - first.success[panel], *_paired(side, first, panel))
        for panel, success in side.success.items()
        if panel in first.success
    ]


def _paired(side: Side, first: Side, panel: str) -> tuple[float | None, float | None, int | None]:
    """Normal 95 % interval of the mean difference over tasks; nothing where tasks differ or are not known."""
    here, there = side.outcomes.get(panel), first.outcomes.get(panel)
    if here is None or there is None or side.panels[panel] != first.panels[panel] or len(here) < 2:
        return None, None, None
    gains = [int(a) - int(b) for a, b in zip(here, there, strict=True)]
    half = 1.96 * stdev(gains) / len(gains) ** 0.5
    return mean(gains) - half, mean(gains) + half, len(gains)


def _sentence(found: Difference) -> str:
    claim = f"{found.panel}: {found.run} - {found.against} = {found.difference:+.3f}"
    if found.low is None:
        return f"{claim}, without an interval: the same tasks' outcomes are not kept on both sides"
    return f"{claim} [{found.low:+.3f}, {found.high:+.3f}], paired over {found.tasks} tasks"
