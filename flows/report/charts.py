"""The report's figures. Geometry: scales, ticks and paths, whose style the templates define.

Figures over revisions: success and reward by panel, distribution of advantages, seconds per stage.

Matplotlib draws whole pictures; the page's figures have marks with titles, colours of the page's themes, and text that
can be searched. Its ticker alone would save one function of three lines, and takes 0.2 s to import.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from statistics import median

from coevo.flows.history.history import predecessor, trail
from coevo.flows.report.outcomes import bracket, success_of
from coevo.lineage.revision.manifest import Manifest
from coevo.records.intervals import Interval
from coevo.tasks.cost import stages

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


HEIGHT = 316
MAX_WHISKERS = 60
"""Most training batches whose intervals are drawn."""
MAX_LAYERS = 7
"""Stages with a layer of their own; the others share one."""
SUCCESS = "agent/success/"
INTERNALIZATION = "bank/internalization/"
MINUS = "top1_minus_"
MetricFunction = Callable[[Manifest], float | None]


@dataclass(frozen=True, slots=True)
class StageLayer:
    """Seconds of one stage: its columns, their sum and median."""

    name: str
    path: str
    total: float
    median: float


@dataclass(frozen=True, slots=True)
class Band:
    """Area from the least to the greatest advantage, and area of one standard deviation around the mean."""

    extremes: str
    deviation: str


def panels(history: Sequence[Manifest]) -> list[str]:
    """Names under which success is recorded: ``train``, then panels in the order of their first evaluation."""
    named = [name.removeprefix(SUCCESS) for m in history for name in m.metrics if name.startswith(SUCCESS)]
    return sorted(dict.fromkeys(named), key=lambda name: name != "train")


def by_panel(history: Sequence[Manifest], what: str) -> Plot | None:
    """``success`` or ``reward`` by panel; None if no revision has it."""
    series = {panel: _metric(f"agent/{what}/{panel}") for panel in panels(history)}
    plot = _plot(history, series, (0, 1) if what == "success" else ())
    return with_intervals(plot, history) if plot is not None and what == "success" else plot


def with_intervals(plot: Plot, history: Sequence[Manifest]) -> Plot:
    """Success with the interval of each mark that has one; with many marks, only of those of held-out panels."""
    return replace(plot, curves=tuple(_with_intervals(curve, plot, history) for curve in plot.curves))


def _with_intervals(curve: Curve, plot: Plot, history: Sequence[Manifest]) -> Curve:
    if curve.name == "train" and len(curve.marks) > MAX_WHISKERS:
        return curve
    return replace(curve, marks=tuple(_with_interval(mark, curve.name, plot, history) for mark in curve.marks))


def _with_interval(mark: Mark, panel: str, plot: Plot, history: Sequence[Manifest]) -> Mark:
    found = success_of(history[mark.revision], panel)
    if found is None:
        return mark
    title = f"{mark.title} {bracket(found)}"
    return replace(mark, title=title, interval=found, low=plot.y.at(found.low), high=plot.y.at(found.high))


def internalization(history: Sequence[Manifest]) -> Plot | None:
    """Gain of the best entry over none and over a random one, by panel; None if no revision has it."""
    found = dict.fromkeys(name for m in history for name in m.metrics if name.startswith(INTERNALIZATION))
    gains = [name for name in found if name.endswith((f"{MINUS}none", f"{MINUS}random"))]
    names = {name: name.removeprefix(INTERNALIZATION).replace(f"/{MINUS}", ", minus ") for name in gains}
    return _plot(history, {shown: _metric(name) for name, shown in names.items()}, (0,))


def spread(history: Sequence[Manifest]) -> tuple[Plot, Band] | None:
    """Standard deviation and mean of advantages, and the band between extremes; None without advantages."""
    led = [m for m in trail(history) if "policy/advantage/std" in m.metrics]
    if not led:
        return None
    ends = [_of(m, name) for m in led for name in ("min", "max")]
    deviations = [_of(m, "mean") + sign * _of(m, "std") for m in led for sign in (-1, 1)]
    series = {"mean": _metric("policy/advantage/mean"), "deviation": _metric("policy/advantage/std")}
    plot = _plot(history, series, [*ends, *deviations])
    assert plot is not None
    x, y = plot.x, plot.y
    lows, highs = ([(x.at(m.revision), y.at(_of(m, name))) for m in led] for name in ("min", "max"))
    below, above = ([(x.at(m.revision), y.at(_of(m, "mean") + sign * _of(m, "std"))) for m in led] for sign in (-1, 1))
    return plot, Band(area(highs, lows), area(above, below))


def durations(history: Sequence[Manifest]) -> tuple[Plot, list[StageLayer]] | None:
    """Seconds per stage, stacked, of every revision that has times; None without times."""
    spent = {m.revision: stages(m) for m in history}
    names = _longest_first(spent.values())
    if not names:
        return None
    x = across(history[-1].revision)
    y = upwards([sum(found.values()) for found in spent.values()], HEIGHT, include=[0])
    under = dict.fromkeys(spent, 0.0)
    groups = [[name] for name in names[:MAX_LAYERS]] + ([names[MAX_LAYERS:]] if len(names) > MAX_LAYERS else [])
    layers = [_layer(group, spent, under, x, y) for group in groups]
    return Plot(HEIGHT, x, y), layers


def _longest_first(spent: Iterable[dict[str, float]]) -> list[str]:
    """Stages by their seconds in all revisions."""
    totals: dict[str, list[float]] = {}
    for found in spent:
        for name, value in found.items():
            totals.setdefault(name, []).append(value)
    return sorted(totals, key=lambda name: -sum(totals[name]))


def _layer(
    group: Sequence[str], spent: dict[int, dict[str, float]], under: dict[int, float], x: Scale, y: Scale
) -> StageLayer:
    """Columns of a group of stages, on top of the previous layers."""
    wide = round(max(1.0, (x.end - x.start) / (x.high + 1) * 0.8), 1)
    columns, values = [], []
    for revision, found in spent.items():
        value = sum(found.get(name, 0.0) for name in group)
        if value:
            top, bottom = y.at(under[revision] + value), y.at(under[revision])
            columns.append(f"M{x.at(revision) - wide / 2:g} {top:g}h{wide:g}v{bottom - top:.1f}h-{wide:g}z")
            under[revision] += value
            values.append(value)
    name = group[0] if len(group) == 1 else f"{len(group)} others"
    return StageLayer(name, "".join(columns), sum(values), median(values))


def _plot(history: Sequence[Manifest], series: dict[str, MetricFunction], include: Sequence[float]) -> Plot | None:
    known = {name: {m.revision: v for m in history if (v := value(m)) is not None} for name, value in series.items()}
    known = {name: values for name, values in known.items() if values}
    if not known:
        return None
    x = across(history[-1].revision)
    y = upwards([value for values in known.values() for value in values.values()], HEIGHT, include=include)
    return Plot(HEIGHT, x, y, tuple(_curve(name, values, history, x, y) for name, values in known.items()))


def _curve(name: str, values: dict[int, float], history: Sequence[Manifest], x: Scale, y: Scale) -> Curve:
    led = {manifest.revision for manifest in trail(history)}
    points = {revision: (x.at(revision), y.at(value)) for revision, value in values.items()}
    on_trail = [points[manifest.revision] for manifest in trail(history) if manifest.revision in values]
    aside = [
        line([points[before], points[revision]])
        for revision in values
        if revision not in led and (before := _measured_before(revision, values, history)) is not None
    ]
    marks = [
        Mark(*points[revision], value, f"{name}, revision {revision}: {value:.4g}", revision)
        for revision, value in values.items()
    ]
    return Curve(name, (line(on_trail),) if len(on_trail) > 1 else (), tuple(aside), tuple(marks))


def _measured_before(revision: int, values: dict[int, float], history: Sequence[Manifest]) -> int | None:
    """The nearest preceding revision with a value."""
    before = predecessor(history[revision])
    while before is not None and before not in values:
        before = predecessor(history[before])
    return before


def _metric(name: str) -> MetricFunction:
    return lambda manifest: manifest.metrics.get(name)


def _of(manifest: Manifest, name: str) -> float:
    return float(manifest.metrics[f"policy/advantage/{name}"])
