"""Geometry of the report's figures: scales, ticks and paths. Templates define their style.

Matplotlib draws whole pictures; the page's figures have marks with titles, colours of the page's themes, and text that
can be searched. Its ticker alone would save one function of three lines, and takes 0.2 s to import.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from coevo.records.intervals import Interval

WIDTH, LEFT, RIGHT, TOP, BELOW = 960, 56, 170, 22, 44
"""Size of a figure in user units: full width, and space for labels left, right, above and below."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear map of values from ``low`` to ``high`` to pixels from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Pixel position of a value."""
        span = self.high - self.low
        return round(self.start + (self.end - self.start) * ((value - self.low) / span if span else 0.5), 1)

    def ticks(self, count: int = 5, whole: bool = False) -> list[tuple[float, str]]:
        """Positions and labels of about ``count`` round values."""
        step = _step((self.high - self.low) / count, whole)
        first, last = ceil(round(self.low / step, 6)), floor(round(self.high / step, 6))
        return [(self.at(number * step), f"{number * step:.10g}") for number in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class Mark:
    """A measured value in a figure, and its interval with the positions of both ends, if it has one."""

    x: float
    y: float
    value: float
    title: str
    revision: int = 0
    interval: Interval | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """A series: ``paths`` for revisions that led to the last one, ``aside`` for those that a rollback left behind."""

    name: str
    paths: tuple[str, ...]
    aside: tuple[str, ...]
    marks: tuple[Mark, ...]

    @property
    def label_y(self) -> float:
        """Vertical position of its last mark."""
        return self.marks[-1].y


@dataclass(frozen=True, slots=True)
class Plot:
    """Axes and the curves between them."""

    height: float
    x: Scale
    y: Scale
    curves: tuple[Curve, ...] = ()

    @property
    def labels(self) -> list[tuple[float, int, str]]:
        """Names of the curves beside their ends, moved apart: vertical position, number, name."""
        placed: list[tuple[float, int, str]] = []
        for y, number, name in sorted((curve.label_y, number, curve.name) for number, curve in enumerate(self.curves)):
            placed.append((max(y, placed[-1][0] + 15) if placed else y, number, name))
        over = max(0.0, placed[-1][0] - self.y.start) if placed else 0.0
        return [(y - over, number, name) for y, number, name in placed]


def across(last: float) -> Scale:
    """Revisions from 0 to the last one, from left to right."""
    return Scale(0, max(1, last), LEFT, WIDTH - RIGHT)


def upwards(values: Iterable[float], height: float, *, include: Sequence[float] = ()) -> Scale:
    """Vertical scale with the least value at the bottom and the greatest at the top."""
    every = [*values, *include] or [0.0, 1.0]
    low, high = min(every), max(every)
    return Scale(low, high if high > low else low + 1, height - BELOW, TOP)


def line(points: Sequence[tuple[float, float]]) -> str:
    """A path through points."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def area(points: Sequence[tuple[float, float]], floor_points: Sequence[tuple[float, float]]) -> str:
    """A closed path along points, and back along the floor points."""
    return line([*points, *reversed(floor_points)]) + "Z"


def _step(rough: float, whole: bool) -> float:
    size = 10.0 ** floor(log10(rough)) if rough > 0 else 1.0
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.999)
    return max(1.0, step) if whole else step
