"""Health of a bank: entries that nobody reads, that say the same twice, that contradict each other, or are untested."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from coevo.memory.bank.bank import BankView
from coevo.memory.similarity import SimilarityIndex
from coevo.memory.stats import Stats
from coevo.records.entry import Entry, Verdict

SIMILAR = 0.8
"""Similarity of texts from which on two entries with opposite effects contradict each other."""
DUPLICATE = 0.85
"""Similarity of texts from which on two entries are near-duplicates."""

SimilarPair = tuple[str, str, float]
"""Ids of two entries, the lower one first, and the similarity of their texts."""


@dataclass(frozen=True, slots=True)
class BankHealth:
    """Report on the active entries of a bank.

    Attributes:
        entries: number of them.
        tested: share whose gain was measured by replay, one by one; 0 in an empty bank.
        never_retrieved: ids of entries that no reported outcome has seen (``StandaloneBank.outcomes``).
        near_duplicates: pairs of one scope that are at least ``DUPLICATE`` similar and do not contradict each other.
        contradictions: pairs of one scope and condition that are at least ``SIMILAR``, with measured gains of opposite
            sign.
    """

    entries: int
    tested: float
    never_retrieved: tuple[str, ...]
    near_duplicates: tuple[SimilarPair, ...]
    contradictions: tuple[SimilarPair, ...]


def bank_health(entries: Iterable[Entry], stats: Mapping[str, Stats], gains: Mapping[str, float]) -> BankHealth:
    """Report on active entries.

    Args:
        entries: active ones.
        stats: counters by id.
        gains: measured gain of entries by id, see ``measured_gains``.
    """
    active = sorted(entries, key=attrgetter("id"))
    contradictions, duplicates = [], []
    for one, other, alike in _similar(active):
        opposed = gains.get(one.id, 0.0) * gains.get(other.id, 0.0) < 0
        if opposed and one.condition == other.condition:
            contradictions.append((one.id, other.id, alike))
        elif alike >= DUPLICATE:
            duplicates.append((one.id, other.id, alike))
    never = tuple(entry.id for entry in active if entry.id not in stats or not stats[entry.id].retrievals)
    tested = sum(entry.id in gains for entry in active) / max(len(active), 1)
    return BankHealth(len(active), tested, never, tuple(duplicates), tuple(contradictions))


def measured_gains(view: BankView) -> dict[str, float]:
    """Latest measured gain of each lesson that was replayed by itself, by its id; positive where it helped."""
    judged = sorted((each.verdict for each in [*view.judged(), *view.left_out()]), key=attrgetter("revision"))
    return {verdict.candidates[0]: verdict.difference for verdict in judged if _alone(verdict)}


def _alone(verdict: Verdict) -> bool:
    return len(verdict.candidates) == 1 and verdict.pairs > 0


def _similar(entries: Sequence[Entry]) -> Iterator[tuple[Entry, Entry, float]]:
    """Pairs of one scope that are at least ``SIMILAR``, each once."""
    scopes: dict[str, tuple[SimilarityIndex, list[Entry]]] = {}
    for entry in entries:
        texts, before = scopes.setdefault(entry.scope, (SimilarityIndex(), []))
        numbers, scores = texts.above(entry.strategy, SIMILAR)
        for number, alike in zip(numbers.tolist(), scores.tolist(), strict=True):
            yield before[number], entry, alike
        texts.add(entry.strategy)
        before.append(entry)
