"""Rewards of the policy's answers as writer: for a right prediction, or for lessons that replay finds useful."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coevo.memory.bank.change import Judged
from coevo.memory.evidence.reflections import Reflected
from coevo.memory.writers.writer import WriterAnswer
from coevo.models.writer_models.lesson_tokens import items
from coevo.records.writing import Credit, Rewarded


def predicted(made: Iterable[Reflected], balance: bool) -> list[Rewarded]:
    """Reward 1 for each reflection that predicts the outcome of its episode, else 0 (RetroAgent Eq. 3, unscaled).

    With ``balance``, successes and failures have equal weight as wholes, and the mean weight is 1.
    """
    told = [(each.drawn, each.episode.success, each.reflection.success) for each in made if each.drawn is not None]
    counts = Counter(success for _, success, _ in told)
    return [
        Rewarded(
            drawn,
            (Credit(0, len(drawn.token_ids), float(guess is success)),),
            len(told) / (len(counts) * counts[success]) if balance else 1.0,
        )
        for drawn, success, guess in told
    ]


def gains_of(judged: Iterable[Judged]) -> dict[str, float]:
    """Paired gain of each candidate of a firing, by id."""
    return {name: each.verdict.difference for each in judged if each.verdict.pairs for name in each.verdict.candidates}


def replayed(writer_answers: Iterable[WriterAnswer], gains: Mapping[str, float], tokenizer: Any) -> list[Rewarded]:
    """Reward of each lesson: its paired gain (CoEvo-RL Eq. 7), for the tokens of its item.

    A lesson that the bank knows has none, as one without a verdict, and as one that the answer repeats. The gain that
    once admitted it is too high, since it was chosen for being high: with it a policy learns to repeat what it has
    written.

    Args:
        writer_answers: answers of the policy.
        gains: paired gain of each lesson that this firing judged, by the id of its entry.
        tokenizer: of the policy.
    """
    found = (Rewarded(each.drawn, tuple(_credits(each, gains, tokenizer))) for each in writer_answers)
    return [each for each in found if each.credits]


def unmatched(writer_answers: Iterable[WriterAnswer], gains: Mapping[str, float], rewarded: Iterable[Rewarded]) -> int:
    """Number of lessons with a gain that earn nothing, since no tokens of their answer decode to them.

    Args:
        writer_answers: answers of the policy.
        gains: of each lesson that this firing judged.
        rewarded: what ``replayed`` made of both.
    """
    gained = sum(len({entry for _, entry in each.lessons if entry in gains}) for each in writer_answers)
    return gained - sum(len(each.credits) for each in rewarded)


def _credits(answer: WriterAnswer, gains: Mapping[str, float], tokenizer: Any) -> Iterator[Credit]:
    texts, told = [text for text, _ in answer.lessons], set[str]()
    for (_, entry), item in zip(answer.lessons, items(tokenizer, answer.drawn.token_ids, texts), strict=True):
        if entry in gains and entry not in told and item is not None:
            told.add(entry)
            yield Credit(item.start, item.stop, gains[entry])
