"""Replay-validated admission (CoEvo-RL Eq. 7): a batch enters if fresh rollouts earn more with it than without."""

from collections.abc import Callable, Sequence

import numpy as np

from configs.bank import ReplayAdmissionConfig
from records.entry import Entry, Verdict

Replay = Callable[[Sequence[Entry]], Sequence[float]]
"""Rewards of fresh rollouts on the tasks that produced the candidates, with these entries added to the bank.

Every call plays the same tasks and replicas with the same draws, in the same order, so rewards pair by position.
"""


def judge(candidates: Sequence[Entry], replay: Replay, config: ReplayAdmissionConfig, revision: int) -> Verdict | None:
    """All of the candidates or none: admitted iff R(E + V) > R(E) + delta. None, and no replay, without candidates.

    The difference is the mean over pairs, its standard error sd / sqrt(n) with sd of n - 1 degrees of freedom.
    Raises ``ValueError`` if the two sides do not pair.
    """
    if not candidates:
        return None
    with_them, without = np.asarray(replay(candidates), float), np.asarray(replay(()), float)
    if with_them.shape != without.shape or not with_them.size:
        raise ValueError(f"replays do not pair: {with_them.size} with the candidates, {without.size} without")
    gains = with_them - without
    difference = float(gains.mean())
    return Verdict(
        revision=revision,
        candidates=tuple(entry.id for entry in candidates),
        # Rounded, so that a gain of exactly delta is a tie, and ties are rejected.
        admitted=round(difference - config.delta, 12) > 0,
        reward_with=float(with_them.mean()),
        reward_without=float(without.mean()),
        difference=difference,
        stderr=float(gains.std(ddof=1) / gains.size**0.5) if gains.size > 1 else 0.0,
        pairs=gains.size,
        delta=config.delta,
    )
