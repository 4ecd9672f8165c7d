"""Replay-validated admission (CoEvo-RL Eq. 7): entries enter if fresh rollouts earn more with them than without."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from coevo.configs.bank.admission import ReplayAdmissionConfig, WithinGroupAdmissionConfig
from coevo.memory.admission.base import Decision, Replay, Trial
from coevo.memory.admission.confidence import lower_bound
from coevo.memory.bank.change import Judged
from coevo.memory.library import Library
from coevo.memory.writers.base import Proposal
from coevo.records.entry import Entry, Verdict


class ReplayAdmission:
    """Admission by replay: of all candidates or none with ``per: batch``, of each candidate with ``per: entry``."""

    def __init__(self, config: ReplayAdmissionConfig) -> None:
        self._config = config

    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """Return the entries whose verdict admits them; without candidates, nothing is replayed."""
        batches = [proposal.entries] if self._config.per == "batch" else [(entry,) for entry in proposal.entries]
        judged = tuple(self._judged([batch for batch in batches if batch], replay, revision))
        admitted = tuple(entry for each in judged if each.verdict.admitted for entry in each.candidates)
        return Decision(admitted, judged=judged, metrics=metrics([each.verdict for each in judged]))

    def _judged(self, batches: Sequence[tuple[Entry, ...]], replay: Replay, revision: int) -> Iterator[Judged]:
        """Yield a verdict per batch; one call replays both sides of all batches."""
        trials = [Trial(added, batch) for batch in batches for added in (batch, ())]
        rewards = replay(trials, self._config.replays) if trials else ()
        for batch, with_them, without in zip(batches, rewards[::2], rewards[1::2], strict=True):
            yield Judged(judge(batch, with_them, without, self._config, revision), batch)


def judge(
    candidates: Sequence[Entry],
    rewards_with: Sequence[float],
    rewards_without: Sequence[float],
    config: ReplayAdmissionConfig | WithinGroupAdmissionConfig,
    revision: int,
) -> Verdict:
    """Admit all of the candidates or none: admitted iff R(E + V) > R(E) + delta.

    With ``config.confidence``, the lower bound of the difference has to exceed delta, see ``lower_bound``.

    The difference is the mean over pairs; its standard error is sd / sqrt(n), where sd has n - 1 degrees of freedom.
    A pair with a NaN is left out; if more than half of the pairs are, or there is none, nothing is admitted.
    Raises ``ValueError`` if the two sides have different sizes.
    """
    found = measured(candidates, rewards_with, rewards_without, config.delta, revision)
    return replace(found, admitted=suffices(found, len(rewards_with)) and _exceeds(found, config.confidence))


def suffices(found: Verdict, planned: int) -> bool:
    """Report whether a measurement has at least half of its planned pairs, and one."""
    return found.pairs > 0 and 2 * found.pairs >= planned


def measured(
    candidates: Sequence[Entry],
    rewards_with: Sequence[float],
    rewards_without: Sequence[float],
    delta: float,
    revision: int,
) -> Verdict:
    """Mean paired difference of the rewards with and without some entries, admitted by nobody yet.

    A pair with a NaN is left out. Raises ``ValueError`` if the two sides have different sizes.
    """
    with_them, without = np.asarray(rewards_with, float), np.asarray(rewards_without, float)
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


def _exceeds(found: Verdict, confidence: float | None) -> bool:
    gain = found.difference if confidence is None else lower_bound(found, confidence)
    return exceeds(gain, found.delta)


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
            "inside_noise": float(verdict.inside_noise),
        }
        for verdict in verdicts
    ]
    means = {f"{part}/{name}": sum(each[name] for each in figures) / len(figures) for name in figures[0]}
    return means | pairs


def admission(config: ReplayAdmissionConfig) -> ReplayAdmission:
    """Admission by replay with the settings of a configuration."""
    return ReplayAdmission(config)
