"""Replay-validated admission (CoEvo-RL Eq. 7): entries enter if fresh rollouts earn more with them than without.

With a confidence, a candidate is looked at after every ``ROUND`` replicas, and played no further once it is admitted.
Its bound holds at every look of its life, those of earlier firings counted, so neither further firings nor an early
stop let chance in. The mean gain of a candidate that was admitted early is a little too high.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coevo.configs.bank.admission_config import ReplayAdmissionConfig, WithinGroupAdmissionConfig
from coevo.memory.admission.admission import Decision, Replay, Trial
from coevo.memory.admission.evidence import lower_bound
from coevo.memory.bank.change import Judged
from coevo.memory.library import Library
from coevo.memory.writers.writer import Proposal
from coevo.records.entry import Entry, Verdict

ROUND = 8
"""Replicas of a task that are played before a candidate is looked at, with a confidence."""


@dataclass(frozen=True, slots=True)
class PairedRewards:
    """Rewards of paired replays.

    Attributes:
        with_them: rewards of the replays with the candidates.
        without: rewards of the same replays without them, in the same order.
    """

    with_them: Sequence[float] = ()
    without: Sequence[float] = ()


class ReplayAdmission:
    """Admission by replay: of all candidates or none with ``per: batch``, of each candidate with ``per: entry``."""

    def __init__(self, config: ReplayAdmissionConfig) -> None:
        self._config = config

    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """Return the entries whose verdict admits them; without candidates, nothing is replayed."""
        batches = [proposal.entries] if self._config.per == "batch" else [(entry,) for entry in proposal.entries]
        cases = [_Case(batch, _looks(batch, library), library.admission.span) for batch in batches if batch]
        replayed = self._replayed(cases, replay, revision)
        judged = tuple(Judged(case.verdict, case.candidates) for case in replayed if case.verdict is not None)
        admitted = tuple(entry for each in judged if each.verdict.admitted for entry in each.candidates)
        return Decision(admitted, judged=judged, metrics=metrics([each.verdict for each in judged]))

    def _replayed(self, cases: Sequence["_Case"], replay: Replay, revision: int) -> list["_Case"]:
        """Replay both sides of all cases together, in rounds if a case may be decided before its last replica."""
        most, found = self._config.replays, list(cases)
        size = most if self._config.confidence is None else ROUND
        for first in range(0, most, size):
            still = {n: case for n, case in enumerate(found) if case.verdict is None or not case.verdict.admitted}
            trials = [Trial(a, case.candidates, first=first) for case in still.values() for a in (case.candidates, ())]
            rewards = replay(trials, min(size, most - first)) if trials else ()
            for (n, case), with_them, without in zip(still.items(), rewards[::2], rewards[1::2], strict=True):
                found[n] = case.after(PairedRewards(with_them, without), self._config, revision)
        return found


@dataclass(frozen=True, slots=True)
class _Case:
    """Candidates that are judged together, with their replays so far."""

    candidates: tuple[Entry, ...]
    looks: Sequence[Verdict]
    span: float
    rewards: PairedRewards = PairedRewards()
    verdict: Verdict | None = None

    def after(self, more: PairedRewards, config: ReplayAdmissionConfig, revision: int) -> "_Case":
        """Judge them anew with some more replays."""
        rewards = PairedRewards((*self.rewards.with_them, *more.with_them), (*self.rewards.without, *more.without))
        verdict = judge(self.candidates, rewards, config, revision, self.looks, self.span)
        return replace(self, rewards=rewards, verdict=verdict)


def _looks(batch: tuple[Entry, ...], library: Library) -> Sequence[Verdict]:
    """Earlier measurements of a candidate that is judged by itself."""
    return library.admission.looks(batch[0].id) if len(batch) == 1 else ()


def judge(
    candidates: Sequence[Entry],
    rewards: PairedRewards,
    config: ReplayAdmissionConfig | WithinGroupAdmissionConfig,
    revision: int,
    looks: Sequence[Verdict] = (),
    span: float = 1.0,
) -> Verdict:
    """Admit all of the candidates or none: admitted iff R(E + V) > R(E) + delta.

    With ``config.confidence``, the lower bound of the difference has to exceed delta, over these and all earlier
    measurements of the candidate (see ``lower_bound``).

    The difference is the mean over pairs; its standard error is sd / sqrt(n), where sd has n - 1 degrees of freedom.
    A pair with a NaN is left out; if more than half of the pairs are, or there is none, nothing is admitted.
    Raises ``ValueError`` if the two sides have different sizes.

    Args:
        candidates: judged together.
        rewards: those of the replays with and without them.
        config: threshold and confidence.
        revision: of the verdict.
        looks: earlier measurements of the candidate, the oldest first.
        span: highest minus lowest reward of an episode.
    """
    found = measured(candidates, rewards, config.delta, revision)
    if not suffices(found, len(rewards.with_them)):
        return found
    if config.confidence is None:
        return replace(found, admitted=exceeds(found.difference, found.delta))
    bound = lower_bound([*looks, found], config.confidence, span)
    return replace(found, admitted=exceeds(bound, found.delta), bound=bound)


def suffices(found: Verdict, planned: int) -> bool:
    """Report whether a measurement has at least half of its planned pairs, and one."""
    return found.pairs > 0 and 2 * found.pairs >= planned


def measured(candidates: Sequence[Entry], rewards: PairedRewards, delta: float, revision: int) -> Verdict:
    """Mean paired difference of the rewards with and without some entries, admitted by nobody yet.

    A pair with a NaN is left out. Raises ``ValueError`` if the two sides have different sizes.
    """
    with_them, without = np.asarray(rewards.with_them, float), np.asarray(rewards.without, float)
    if with_them.shape != without.shape:
        raise ValueError(f"replays do not pair: {with_them.size} with the candidates, {without.size} without")
    sound = ~(np.isnan(with_them) | np.isnan(without))
    ids = tuple(entry.id for entry in candidates)
    if not sound.any():
        return Verdict(revision, ids, False, 0.0, 0.0, 0.0, 0.0, 0, delta)
    with_them, without = with_them[sound], without[sound]
    gains = with_them - without
    return Verdict(
        revision=revision,
        candidates=ids,
        admitted=False,
        reward_with=float(with_them.mean()),
        reward_without=float(without.mean()),
        difference=float(gains.mean()),
        stderr=float(gains.std(ddof=1) / gains.size**0.5) if gains.size > 1 else 0.0,
        pairs=gains.size,
        delta=delta,
    )


def exceeds(gain: float, delta: float) -> bool:
    """Report whether a gain is greater than a threshold; rounded, so that a gain of exactly delta is a tie."""
    return round(gain - delta, 12) > 0


def metrics(verdicts: Sequence[Verdict], part: str = "bank/replay") -> dict[str, float]:
    """Means over verdicts with pairs, and the sum of their pairs; without such verdicts, only the sum.

    Args:
        verdicts: of one decision.
        part: first part of the metrics' names.
    """
    pairs = {f"{part}/pairs": float(sum(verdict.pairs for verdict in verdicts))}
    verdicts = [verdict for verdict in verdicts if verdict.pairs]
    if not verdicts:
        return pairs
    figures = [
        {
            "difference": verdict.difference,
            "low": verdict.interval[0],
            "high": verdict.interval[1],
            "reward_with": verdict.reward_with,
            "reward_without": verdict.reward_without,
            "significant": float(verdict.significant),
        }
        for verdict in verdicts
    ]
    means = {f"{part}/{name}": sum(each[name] for each in figures) / len(figures) for name in figures[0]}
    return means | pairs


def admission(config: ReplayAdmissionConfig) -> ReplayAdmission:
    """Admission by replay with the settings of a configuration."""
    return ReplayAdmission(config)
