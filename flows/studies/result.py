"""Result of a study: each arm with its intervals, its difference from the reference, and a verdict on the finding."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Any

from coevo.configs.study_config import ArmConfig, MetricConfig, StudyConfig
from coevo.flows.studies.outcome import Outcome
from coevo.records.intervals import Interval, of_mean, student

AS_CLAIMED = "as the paper"
REVERSED = "reversed"
UNDECIDED = "undecided"
MIN_EQUAL_VALUES, ROUNDING = 6, 1e-9
"""Number of equal values from which on they decide, as in a sign test (2^-6 < 0.025); and width of the interval of
equal ones."""
VERDICTS = (AS_CLAIMED, REVERSED, UNDECIDED)
"""An interval that excludes 0, or the bound of a claim, on the side that is claimed, on the other side, or neither."""


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm by one metric.

    Attributes:
        metric: title of the metric, and ``over`` as in the study.
        over: ``end``, ``area`` or ``rise``.
        arm: name of the arm.
        seeds: number of its finished runs.
        mean: mean over the seeds; None without any. ``low`` and ``high`` are its 95 % interval, from two seeds on.
        difference: mean difference from the reference arm over the ``pairs`` seeds that both have finished.
            ``difference_low`` and ``difference_high`` are its 95 % interval, from two pairs on.
        expected: standing that the finding claims.
        verdict: one of ``VERDICTS``; None where the finding claims nothing.
        episodes: mean cost of a run; ``tokens`` is the same. None where it was not counted.
    """

    metric: str
    over: str
    arm: str
    seeds: int
    mean: float | None
    low: float | None
    high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    pairs: int
    expected: str | None
    verdict: str | None
    episodes: float | None
    tokens: float | None


COLUMNS = tuple(field.name for field in fields(ArmRow))
"""Fields of a row."""


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A study with the outcomes of its finished runs, and one row per metric and arm."""

    study: StudyConfig
    outcomes: tuple[Outcome, ...]
    rows: tuple[ArmRow, ...]

    def summary(self) -> str:
        """Number of finished runs and of verdicts, in one line."""
        total = self.study.seeds * len(self.study.arms)
        counts = Counter(row.verdict for row in self.rows if row.verdict is not None)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        return f"{len(self.outcomes)} of {total} runs are finished; comparisons: {said or 'no claim'}"

    def missing(self) -> list[str]:
        """One line for each metric that is left out of the comparison, since runs lack it."""
        lines = []
        for metric in self.study.metrics:
            lacks = [outcome.lacks[metric.key] for outcome in self.outcomes if metric.key in outcome.lacks]
            if lacks and not _values(self.outcomes, self.study, metric):
                lines.append(f"Not compared: {lacks[0]}" + (f" (as {len(lacks) - 1} more)" if len(lacks) > 1 else ""))
        return list(dict.fromkeys(lines))

    def document(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "study": self.study.model_dump(mode="json"),
            "summary": self.summary(),
            "missing": self.missing(),
            "rows": [asdict(row) for row in self.rows],
            "runs": [asdict(outcome) | {"values": self._values(outcome)} for outcome in self.outcomes],
        }

    def _values(self, outcome: Outcome) -> dict[str, float]:
        pairs = zip((metric.key for metric in self.study.metrics), outcome.values, strict=True)
        return {key: value for key, value in pairs if value is not None}


def compared(study: StudyConfig, found: Sequence[Outcome]) -> StudyResult:
    """Compare the arms of a study by each metric; a reversed finding is a row like any other."""
    rows = [
        _row(metric, arm, study.base, _values(found, study, metric), found)
        for metric in study.metrics
        for arm in study.arms
    ]
    return StudyResult(study, tuple(found), tuple(rows))


def _values(found: Sequence[Outcome], study: StudyConfig, metric: MetricConfig) -> dict[str, dict[int, float]]:
    """Values of one metric, by arm and seed; none if a run lacks it, as means of a part of the runs would mislead.

    None either if all runs lack it: its name may be misspelt.
    """
    if all(metric.key in outcome.lacks for outcome in found):
        return {}
    number, values = study.metrics.index(metric), dict[str, dict[int, float]]()
    for outcome in found:
        known = outcome.values[number]
        if known is None:
            return {}
        values.setdefault(outcome.arm, {})[outcome.seed] = known
    return values


def _row(
    metric: MetricConfig,
    arm: ArmConfig,
    base: ArmConfig,
    values: Mapping[str, Mapping[int, float]],
    found: Sequence[Outcome],
) -> ArmRow:
    ours, theirs = values.get(arm.name, {}), values.get(base.name, {})
    seeds = sorted(ours.keys() & theirs.keys()) if arm is not base else []
    gains = [ours[seed] - theirs[seed] for seed in seeds]
    spread = student([ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]) if len(seeds) > 1 else None
    mean = of_mean(list(ours.values())) if len(ours) > 1 else None
    sure = _firm(mean, len(ours)) if arm is base else _firm(spread, len(seeds))
    costs = [outcome.spent for outcome in found if outcome.arm == arm.name]
    return ArmRow(
        metric=metric.title,
        over=metric.over,
        arm=arm.name,
        seeds=len(ours),
        mean=fmean(ours.values()) if ours else None,
        low=None if mean is None else mean.low,
        high=None if mean is None else mean.high,
        difference=fmean(gains) if gains else None,
        difference_low=None if spread is None else spread.low,
        difference_high=None if spread is None else spread.high,
        pairs=len(seeds),
        expected=_expected(metric, arm, base),
        verdict=_bounded(metric, sure) if arm is base else verdict(metric, arm, sure),
        episodes=_mean([spent.episodes for spent in costs]),
        tokens=_mean([spent.tokens for spent in costs]),
    )


def _firm(found: Interval | None, values: int) -> Interval | None:
    """The interval; None if a few values are equal, which Student's t would call certain."""
    return found if found is None or values >= MIN_EQUAL_VALUES or found.high - found.low > ROUNDING else None


def _expected(metric: MetricConfig, arm: ArmConfig, base: ArmConfig) -> str | None:
    """Claim of the finding about an arm."""
    if arm is base:
        return None if metric.below is None else f"below {metric.below:g}"
    return arm.expected if metric.claimed else None


def _bounded(metric: MetricConfig, found: Interval | None) -> str | None:
    """Verdict on the reference arm by the interval of its mean; None where the finding claims no bound."""
    if metric.below is None:
        return None
    if found is None or found.low <= metric.below <= found.high:
        return UNDECIDED
    return AS_CLAIMED if found.mean < metric.below else REVERSED


def verdict(metric: MetricConfig, arm: ArmConfig, difference: Interval | None) -> str | None:
    """Verdict on one arm by one metric; None where the finding claims nothing of it."""
    if arm.expected is None or not metric.claimed:
        return None
    if difference is None or difference.low <= 0 <= difference.high:
        return UNDECIDED
    is_better = (difference.mean > 0) == (metric.better == "higher")
    return AS_CLAIMED if is_better == (arm.expected == "better") else REVERSED


def _mean(counts: Sequence[int | None]) -> float | None:
    known = [count for count in counts if count is not None]
    return fmean(known) if known and len(known) == len(counts) else None
