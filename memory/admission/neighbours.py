"""Near-duplicates among entries: those of a pool whose strategies are like a text, see ``coevo.memory.similarity``."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from coevo.memory.similarity import SimilarityIndex
from coevo.records.entry import Entry

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class _EntryTexts:
    """Ids and texts of entries, numbered alike."""

    ids: list[str] = field(default_factory=list)
    texts: SimilarityIndex = field(default_factory=SimilarityIndex)


class Neighbours(Generic[K]):
    """Entries in pools; a pool's texts are read when it is first searched.

    Args:
        pool: the pool of an entry.
        entries: those to begin with.
    """

    def __init__(self, pool: Callable[[Entry], K], entries: Iterable[Entry]) -> None:
        self._pool_of = pool
        self._pools: defaultdict[K, _EntryTexts] = defaultdict(_EntryTexts)
        self._unread: defaultdict[K, list[Entry]] = defaultdict(list)
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add an entry to its pool."""
        self._unread[self._pool_of(entry)].append(entry)

    def near(self, text: str, pool: K, least: float) -> list[str]:
        """Ids of the entries of a pool that are at least so similar to a text, in the order they were added."""
        found = self._read(pool)
        numbers, _ = found.texts.above(text, least)
        return [found.ids[number] for number in numbers.tolist()]

    def nearest(self, text: str, pool: K, least: float) -> str | None:
        """Id of the most similar of them, the earlier of equals; None where there is none."""
        found = self._read(pool)
        number, _ = found.texts.nearest(text, least)
        return found.ids[number] if number >= 0 else None

    def _read(self, pool: K) -> _EntryTexts:
        read = self._pools[pool]
        for entry in self._unread.pop(pool, ()):
            read.ids.append(entry.id)
            read.texts.add(entry.strategy)
        return read
