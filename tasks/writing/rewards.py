"""Rewards of the policy's answers as writer: for a right prediction, or for lessons that replay finds useful."""

from collections import Counter
from collections.abc import Iterable, Sequence

from coevo.memory.bank.change import Judged
from coevo.memory.evidence.reflections import Reflected
from coevo.memory.writers.base import Authored
from coevo.records.writing import Rewarded


def predicted(made: Iterable[Reflected], balance: bool) -> list[Rewarded]:
    """Reward 1 for each reflection that predicts the outcome of its episode, else 0 (RetroAgent Eq. 3, unscaled).

    With ``balance``, successes and failures have equal weight as wholes, and the mean weight is 1.
    """
    told = [(each.drawn, each.episode.success, each.reflection.success) for each in made if each.drawn is not None]
    counts = Counter(success for _, success, _ in told)
    return [
        Rewarded(drawn, float(guess is success), len(told) / (len(counts) * counts[success]) if balance else 1.0)
        for drawn, success, guess in told
    ]


def replayed(authored: Iterable[Authored], judged: Sequence[Judged]) -> list[Rewarded]:
    """Reward of each answer: mean paired gain of its candidates (CoEvo-RL Eq. 7), and 0 if it holds no lesson.

    An answer with a candidate that no replay judged has no reward, and is left out.
    """
    gains = {name: each.verdict.difference for each in judged if each.verdict.pairs for name in each.verdict.candidates}
    return [
        Rewarded(each.drawn, sum(gains[name] for name in each.candidates) / max(1, len(each.candidates)))
        for each in authored
        if all(name in gains for name in each.candidates)
    ]
