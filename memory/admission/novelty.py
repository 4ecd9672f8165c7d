"""Novelty (SLEA-RL appendix D): whether a bank says already, in nearly the same words, what a candidate says."""

from collections import defaultdict
from dataclasses import dataclass, field

from memory.library import Library
from memory.likeness import Likeness
from records.entry import Entry


@dataclass(frozen=True, slots=True)
class _Pool:
    """Ids and texts of entries, numbered alike."""

    ids: list[str] = field(default_factory=list)
    texts: Likeness = field(default_factory=Likeness)

    def add(self, entry: Entry) -> None:
        self.ids.append(entry.id)
        self.texts.add(entry.strategy)


class Known:
    """The entries of a library, and those that are added.

    A candidate is held against those of its zone that whoever finds it may find as well: of its scope, and without one.
    """

    def __init__(self, library: Library, least: float) -> None:
        """``least``: similarity from which on two texts say the same, see ``memory.likeness``."""
        self._least = least
        self._ids = set(library.row_of)
        self._gone: set[str] = set()
        self._pools: dict[tuple[str, str], _Pool] = {}
        self._unread: defaultdict[tuple[str, str], list[Entry]] = defaultdict(list)
        for entry in library.entries:
            self._unread[entry.zone, entry.scope].append(entry)

    def has_like(self, entry: Entry) -> bool:
        """Whether one of them is like the entry; of the same id one is, whatever its zone."""
        return entry.id in self._ids or any(self._is_near(entry, scope) for scope in {entry.scope, ""})

    def add(self, entry: Entry) -> None:
        """It is known from now on."""
        self._ids.add(entry.id)
        self._pool(entry.zone, entry.scope).add(entry)

    def forget(self, entry: Entry) -> None:
        """It leaves the bank: nothing is held against it any more."""
        self._gone.add(entry.id)

    def _is_near(self, entry: Entry, scope: str) -> bool:
        pool = self._pool(entry.zone, scope)
        numbers, _ = pool.texts.above(entry.strategy, self._least)
        return any(pool.ids[number] not in self._gone for number in numbers.tolist())

    def _pool(self, zone: str, scope: str) -> _Pool:
        pool = self._pools.setdefault((zone, scope), _Pool())
        for entry in self._unread.pop((zone, scope), ()):
            pool.add(entry)
        return pool
