"""Outcome of one run of a study: values of the metrics, and cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import ceil
from statistics import fmean

from coevo.configs.study_config import MetricConfig, StudyConfig
from coevo.flows.history import history
from coevo.flows.studies.study_runs import StudyRun, check_name
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import Workspace
from coevo.tasks.cost import Spent, spending
from coevo.utilities.errors import CoevoError, nearest


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that has done all of its iterations.

    Attributes:
        run: name of the run.
        arm: name of its arm.
        seed: its seed.
        values: value by the position of the study's metric; None without one.
        spent: cost of learning.
        ended: time of its last commit, in ms since 1970.
        curve: iteration, episodes, tokens and seconds of learning, and value, wherever the primary metric has one.
        lacks: reason in one line why there is no value other than ``absent``, by the ``key`` of the metric.
    """

    run: str
    arm: str
    seed: int
    values: tuple[float | None, ...]
    spent: Spent
    ended: int
    lacks: dict[str, str] = field(default_factory=dict)
    curve: tuple[tuple[float | None, ...], ...] = ()


def outcomes(
    study: StudyConfig, runs: Sequence[StudyRun], workspace: Workspace, kept: Mapping[str, Outcome] | None = None
) -> list[Outcome]:
    """Outcomes of the finished runs of a study.

    Args:
        study: the study.
        runs: its runs.
        workspace: where they are.
        kept: outcomes that are known already, by run.

    Raises:
        CoevoError: a run has another configuration or cannot be read.
    """
    found = dict(kept or {})
    for each in runs:
        if each.name not in found and (one := outcome(study, each, workspace, found.get(each.partner or ""))):
            found[each.name] = one
    return [found[each.name] for each in runs if each.name in found]


def outcome(study: StudyConfig, each: StudyRun, workspace: Workspace, partner: Outcome | None = None) -> Outcome | None:
    """Outcome of a run, None if it is not finished.

    Args:
        study: the study.
        each: the run.
        workspace: where it is.
        partner: outcome of the run that it costs as much as.

    Raises:
        CoevoError: the run has another configuration or cannot be read.
    """
    check_name(each, workspace)
    revisions = revisions_of(each, workspace)
    if left_of(each, revisions, partner):
        return None
    values, lacks = dict[str, float](), dict[str, str]()
    for metric in study.metrics:
        try:
            values[metric.key] = value(metric, revisions, each.name)
        except CoevoError as error:
            lacks[metric.key] = str(error)
            if metric.absent is not None:
                values[metric.key] = _taken(metric, {}, revisions[-1].iteration, each.name)
    found = tuple(values.get(metric.key) for metric in study.metrics)
    ended, spent = int(revisions[-1].observed["timestamp"]), spending(revisions)[-1]
    return Outcome(each.name, each.arm.name, each.seed, found, spent, ended, lacks, _curve(study, revisions))


def _curve(study: StudyConfig, revisions: Sequence[Manifest]) -> tuple[tuple[float | None, ...], ...]:
    """Course of the primary metric by iterations, episodes, tokens and seconds."""
    name = "" if study.primary is None else study.primary.name
    return tuple(
        (each.iteration, spent.episodes, spent.tokens, round(spent.seconds, 1), each.metrics[name])
        for each, spent in zip(revisions, spending(revisions), strict=True)
        if name in each.metrics
    )


def revisions_of(each: StudyRun, workspace: Workspace) -> list[Manifest]:
    """Revisions of a run, oldest first; empty if it has none or does not exist.

    Raises:
        CoevoError: its lineage cannot be read.
    """
    paths = workspace.run(each.name)
    if not paths.lineage.exists():
        return []
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        found = lineage.history.log()
    history.check(found)
    return found


def is_finished(each: StudyRun, revisions: Sequence[Manifest]) -> bool:
    """Return True if a run has done all of its iterations."""
    return bool(revisions) and revisions[-1].iteration >= each.config.iterations


def left_of(each: StudyRun, revisions: Sequence[Manifest], partner: Outcome | None = None) -> int:
    """Iterations that a run still has to do; of one that costs as much as another, about as many as that takes."""
    if not is_finished(each, revisions):
        return each.config.iterations - (revisions[-1].iteration if revisions else 0) or 1
    if each.arm.matches is None:
        return 0
    by, done = each.arm.matches.by, revisions[-1].iteration
    budget, spent = None if partner is None else partner.spent.of(by), spending(revisions)[-1].of(by)
    if budget is None or not spent:
        raise CoevoError(
            f"run {each.name!r} costs as much as {each.partner!r}, whose {by} are not known: play that first"
        )
    return max(0, ceil((budget - spent) / spent * done))


def value(metric: MetricConfig, revisions: Sequence[Manifest], run: str) -> float:
    """Value of a metric of a run, or of a difference of two, from the revisions that led to the last one.

    Raises:
        CoevoError: the run has no such metric, or never both at once.
    """
    led = history.trail(revisions)
    points = _points(metric.name, led, run)
    if metric.minus is not None:
        less = _points(metric.minus, led, run)
        points = {iteration: points[iteration] - less[iteration] for iteration in points.keys() & less.keys()}
    if not points:
        raise CoevoError(f"run {run!r} never has {metric.name!r} and {metric.minus!r} at once: compare other metrics")
    return _taken(metric, points, led[-1].iteration, run)


def _taken(metric: MetricConfig, points: dict[int, float], last: int, run: str) -> float:
    """Number that a metric takes of its values by iteration, with ``absent`` at iterations without one.

    Raises:
        CoevoError: a rise lacks values at its beginning or end.
    """
    if metric.absent is not None:
        points = dict.fromkeys(range(min(1, last), last + 1), metric.absent) | points
    kinds: Mapping[str, Callable[[Mapping[int, float]], float]] = {
        "end": end, "gain": gain, "area": area, "rise": partial(rise, last, run, metric.title),
    }  # fmt: skip
    return kinds[metric.over](points)


def _points(name: str, led: Sequence[Manifest], run: str) -> dict[int, float]:
    """Values of a metric by iteration, at least one."""
    points = {each.iteration: each.metrics[name] for each in led if name in each.metrics}
    if not points:
        known = {other for each in led for other in each.metrics}
        raise CoevoError(f"run {run!r} has no metric {name!r}.{nearest(name, known)} `coevo log {run} --json` has all")
    return points


def end(points: Mapping[int, float]) -> float:
    """Last value."""
    return points[max(points)]


def gain(points: Mapping[int, float]) -> float:
    """Last value minus the first."""
    return points[max(points)] - points[min(points)]


def area(points: Mapping[int, float]) -> float:
    """Area below a curve of values by iteration, divided by the iterations between its ends: its mean height."""
    ends = sorted(points)
    if len(ends) == 1:
        return points[ends[0]]
    whole = sum((points[one] + points[two]) / 2 * (two - one) for one, two in pairwise(ends))
    return whole / (ends[-1] - ends[0])


def rise(last: int, run: str, title: str, points: Mapping[int, float]) -> float:
    """Mean over the last quarter of ``last`` iterations minus that over the first, with the value before training.

    Raises:
        CoevoError: a quarter has no value.
    """
    quarter = max(1, last // 4)
    first = [value for iteration, value in points.items() if iteration <= quarter]
    latest = [value for iteration, value in points.items() if iteration > last - quarter]
    for name, values in (("first", first), ("last", latest)):
        if not values:
            raise CoevoError(
                f"run {run!r} has no {title!r} in the {name} quarter of its iterations: give it an absent value"
            )
    return fmean(latest) - fmean(first)
