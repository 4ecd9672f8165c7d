"""Result of a study: each arm with its intervals, its difference from the reference, and a verdict on the finding."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from statistics import fmean
from typing import Any

from coevo.configs.study_config import ArmConfig, MetricConfig, StudyConfig
from coevo.flows.studies.outcome import Outcome
from coevo.records.intervals import ROUNDING, Interval, chance_beyond, holm, of_mean

AS_CLAIMED = "as the paper"
REVERSED = "reversed"
UNDECIDED = "undecided"
LEVEL = 0.05
"""Probability, adjusted for all claims of the study, below which one is decided."""
VERDICTS = (AS_CLAIMED, REVERSED, UNDECIDED)
"""The value lies surely on the claimed side of 0, or of the bound of a claim, on the other side, or neither."""


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
        chance: probability of such a value if the claim's bound were true, adjusted by Holm for all claims;
            None where the finding claims nothing.
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
    chance: float | None
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

    def standing(self) -> str | None:
        """Verdict on the finding, by its primary metric; None where it claims nothing.

        It is reversed where one of its claims is, and as the paper where all are and every run is finished.
        """
        primary = self.study.primary
        if primary is None:
            return None
        found = {row.verdict for row in self.rows if (row.metric, row.over) == (primary.title, primary.over)} - {None}
        if not found or REVERSED in found:
            return REVERSED if found else None
        is_whole = len(self.outcomes) == self.study.seeds * len(self.study.arms)
        return AS_CLAIMED if found == {AS_CLAIMED} and is_whole else UNDECIDED

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
            "standing": self.standing(),
            "missing": self.missing(),
            "rows": [asdict(row) for row in self.rows],
            "runs": [asdict(outcome) | {"values": self._values(outcome)} for outcome in self.outcomes],
        }

    def _values(self, outcome: Outcome) -> dict[str, float]:
        pairs = zip((metric.key for metric in self.study.metrics), outcome.values, strict=True)
        return {key: value for key, value in pairs if value is not None}


def compared(study: StudyConfig, found: Sequence[Outcome]) -> StudyResult:
    """Compare the arms of a study by each metric; a reversed finding is a row like any other."""
    values = {metric.key: _values(found, study, metric) for metric in study.metrics}
    places = [(metric, arm) for metric in study.metrics for arm in study.arms]
    claims = [_claim(metric, arm, study.base, values[metric.key]) for metric, arm in places]
    made = [claim for claim in claims if claim is not None]
    adjusted = iter(holm([claim.chance for claim in made]))
    rows = [
        _row(metric, arm, study.base, values[metric.key], found)
        if claim is None
        else replace(
            _row(metric, arm, study.base, values[metric.key], found),
            expected=claim.text,
            chance=(chance := next(adjusted)),
            verdict=(AS_CLAIMED if claim.is_as_claimed else REVERSED) if chance < LEVEL else UNDECIDED,
        )
        for (metric, arm), claim in zip(places, claims, strict=True)
    ]
    return StudyResult(study, tuple(found), tuple(rows))


@dataclass(frozen=True, slots=True)
class TestedClaim:
    """A claim of the finding about one arm by one metric.

    Attributes:
        text: what is claimed.
        chance: two-sided probability of the values if the bound of the claim were true.
        is_as_claimed: the values lie on the side that is claimed.
    """

    text: str
    chance: float
    is_as_claimed: bool


def _claim(
    metric: MetricConfig, arm: ArmConfig, base: ArmConfig, values: Mapping[str, Mapping[int, float]]
) -> TestedClaim | None:
    """Claim of the finding about an arm by a metric, tested; None if it claims nothing."""
    ours, theirs = values.get(arm.name, {}), values.get(base.name, {})
    if arm is base and metric.below is not None:
        return _beyond(f"below {metric.below:g}", list(ours.values()), metric.below, sign=-1)
    if arm.expected is None or not metric.claimed:
        return None
    if arm.expected == "positive":
        return _beyond("above 0", list(ours.values()), 0.0, sign=1)
    gains = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    if arm.expected == "equal":
        return _equal(gains, metric.within or 0.0)
    return _beyond(
        arm.expected, gains, 0.0, sign=1 if (arm.expected == "better") == (metric.better == "higher") else -1
    )


def _beyond(text: str, values: Sequence[float], bound: float, sign: int) -> TestedClaim:
    """The claim that a mean is above a bound, or below it with a negative sign."""
    if len(values) < 2:
        return TestedClaim(text, 1.0, False)
    return TestedClaim(text, chance_beyond(values, bound), (fmean(values) - bound) * sign > 0)


def _equal(gains: Sequence[float], within: float) -> TestedClaim:
    """The claim that a mean lies between two bounds: each of the two is passed (two one-sided tests).

    The bound that is nearer decides: inside, whether both are passed; outside, whether the mean is beyond one.
    """
    text = f"within {within:g}"
    if len(gains) < 2:
        return TestedClaim(text, 1.0, False)
    chances = [chance_beyond(gains, bound) for bound in (-within, within)]
    is_inside = abs(fmean(gains)) < within
    return TestedClaim(text, max(chances), is_inside)


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
    spread, mean = _spread(gains), _spread(list(ours.values()))
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
        expected=None,
        chance=None,
        verdict=None,
        episodes=_mean([spent.episodes for spent in costs]),
        tokens=_mean([spent.tokens for spent in costs]),
    )


def _spread(values: Sequence[float]) -> Interval | None:
    """Mean and its interval over seeds; None for one seed, and for equal values, which would look certain."""
    differ = bool(values) and max(values) - min(values) > ROUNDING * max(1.0, *map(abs, values))
    return of_mean(values) if differ else None


def _mean(counts: Sequence[int | None]) -> float | None:
    known = [count for count in counts if count is not None]
    return fmean(known) if known and len(known) == len(counts) else None
