"""Reading a bank that stands alone: retrieval, entries, candidates, and the report on its health."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from coevo.memory.bank.bank import BankView
from coevo.memory.bank.change import Judged
from coevo.memory.exchange.exchange import write_entries
from coevo.memory.retrieval.index import Hit
from coevo.memory.similarity import SimilarityIndex
from coevo.memory.stats import Stats
from coevo.memory.validate import shortened
from coevo.records.entry import Entry, Verdict, wording
from coevo.tasks.bank_alone.bank_revisions import BankRevision
from coevo.tasks.bank_alone.new_lesson import ScopeName, scope_text
from coevo.tasks.bank_alone.scoped_index import ScopedIndex
from coevo.utilities.errors import CoevoError

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
        if contradict(one, other, gains):
            contradictions.append((one.id, other.id, alike))
        elif alike >= DUPLICATE:
            duplicates.append((one.id, other.id, alike))
    never = tuple(entry.id for entry in active if entry.id not in stats or not stats[entry.id].retrievals)
    tested = sum(entry.id in gains for entry in active) / max(len(active), 1)
    return BankHealth(len(active), tested, never, tuple(duplicates), tuple(contradictions))


def measured_gains(view: BankView) -> dict[str, float]:
    """Latest measured gain of each lesson that was replayed by itself, by its id; positive where it helped."""
    return gains_of([*view.judged(), *view.left_out()])


def gains_of(measurements: Iterable[Judged]) -> dict[str, float]:
    """Latest gain of each lesson that one of these measurements replayed by itself, by its id."""
    judged = sorted((each.verdict for each in measurements), key=attrgetter("revision"))
    return {verdict.candidates[0]: verdict.difference for verdict in judged if _alone(verdict)}


def contradict(one: Entry, other: Entry, gains: Mapping[str, float]) -> bool:
    """True if two similar entries of one condition have measured gains of opposite sign."""
    opposed = gains.get(one.id, 0.0) * gains.get(other.id, 0.0) < 0
    return opposed and wording(one.condition) == wording(other.condition)


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


MAX_RESULTS = 1000
"""Most entries that a query returns."""


@dataclass(frozen=True, slots=True)
class BankContent:
    """Content of one revision.

    Attributes:
        revision: its record.
        view: its tables.
        index: index of its active entries.
        stats: counters by entry id.
    """

    revision: BankRevision
    view: BankView
    index: ScopedIndex
    stats: Mapping[str, Stats]


class Retriever:
    """Retrieval from entries that do not change.

    Args:
        index: of the entries.
    """

    def __init__(self, index: ScopedIndex) -> None:
        self._searched = index

    def retrieve(self, query: str, scope: ScopeName = "", k: int | None = None) -> list[Hit]:
        """Entries of a scope, and entries without scope, that match a query best.

        Args:
            query: task or question in words.
            scope: text, or names of user, agent and task; entries of other scopes are never returned.
            k: most results; by default, that of ``open_bank``.

        Returns:
            At most ``k`` pairs of ``entry`` and ``score``, best first.

        Raises:
            CoevoError: an argument is not acceptable.
        """
        if not isinstance(query, str):
            raise CoevoError(f"query = {shortened(query)}: is no text: write the task in words")
        if k is not None:
            require_k(k)
        return self._index().search(query, scope_text(scope), k=k)

    def lacking(self, scope: ScopeName, hits: Sequence[Hit]) -> str:
        """Reason why ``retrieve`` found no entry of a scope itself, in one line; empty if it did."""
        return self._index().lacking(scope_text(scope), hits)

    def _index(self) -> ScopedIndex:
        return self._searched


class BankReader(Retriever):
    """A revision of a bank, read-only (``BankHistory.at``).

    Args:
        content: of the revision.
    """

    def __init__(self, content: BankContent) -> None:
        super().__init__(content.index)
        self._content = content

    @property
    def revision(self) -> BankRevision:
        """Record of the revision that is read."""
        return self._now().revision

    def entries(self) -> list[Entry]:
        """Active entries, the last edited first."""
        return list(self._now().index.library.entries)

    def entry(self, name: str) -> Entry:
        """The active entry with an id.

        Raises:
            CoevoError: there is none.
        """
        return active_entry(self._now(), name)

    def candidates(self) -> list[Entry]:
        """Lessons that wait to be judged, the first proposed first; retrieval does not return them."""
        return list(self._now().revision.candidates)

    def stats(self) -> dict[str, Stats]:
        """Counters by entry id; an entry that no outcome has seen has none."""
        return dict(self._now().stats)

    def health(self) -> BankHealth:
        """Report on entries that are never retrieved, near-duplicates, contradictions, and the share that was tested.

        With 10,000 entries of one scope this takes seconds.
        """
        now = self._now()
        return bank_health(now.index.library.entries, now.stats, measured_gains(now.view))

    def export(self, path: Path | str) -> int:
        """Write the active entries to a new file.

        ``.jsonl`` and ``.parquet`` are what ``coevo bank import`` reads, ``.md`` is a skill file for agents and people.

        Returns:
            Number of entries.

        Raises:
            CoevoError: the file exists, has another suffix, or cannot be written.
        """
        return write_entries(self._now().index.library.entries, Path(path))

    def _now(self) -> BankContent:
        return self._content

    def _index(self) -> ScopedIndex:
        return self._now().index


def active_entry(now: BankContent, name: object) -> Entry:
    """The active entry with an id.

    Raises:
        CoevoError: there is none.
    """
    row = now.index.library.row_of.get(name) if isinstance(name, str) else None
    if row is None:
        raise CoevoError(f"{shortened(name)} is no active entry: `entries()` lists them with their ids")
    return now.index.library.entries[row]


def require_k(k: object) -> None:
    """Make sure that a number of results is acceptable.

    Raises:
        CoevoError: it is not.
    """
    if type(k) is not int or not 0 <= k <= MAX_RESULTS:
        raise CoevoError(f"k = {shortened(k)}: is no number of results: write a whole number from 0 to {MAX_RESULTS}")
