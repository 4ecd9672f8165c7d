"""The library: active entries of one version of the bank as rows, with the values that scorers need.

Its catalogue has them in the order that breaks ties, each with a number that it keeps from version to version.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from coevo.memory.clusters import Clusters
from coevo.memory.stats import Stats
from coevo.memory.trials import OnTrial
from coevo.records.arrays import Floats, Indices
from coevo.records.entry import Entry, Verdict

SLACK = 1024
"""Numbers that a catalogue spends beyond two per active entry before a new one is begun."""


ScalarT = TypeVar("ScalarT", bound=np.generic)


class Column(Generic[ScalarT]):
    """Array that grows along its first axis; what was read from it before stays as it is."""

    def __init__(self, dtype: type[ScalarT], *shape: int) -> None:
        self._values: npt.NDArray[ScalarT] = np.zeros((0, *shape), dtype)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def extend(self, values: npt.ArrayLike) -> None:
        """Append values."""
        added = np.asarray(values, self._values.dtype)
        end = self._used + len(added)
        if end > len(self._values):
            grown = np.zeros((max(end, self._used + self._used // 4), *self._values.shape[1:]), self._values.dtype)
            grown[: self._used] = self.read()
            self._values = grown
        self._values[self._used : end] = added
        self._used = end

    def read(self) -> npt.NDArray[ScalarT]:
        """The values so far."""
        return self._values[: self._used]


class Catalogue:
    """Active entries of one version of a bank: the later edit first, then the lower id.

    An entry is recognized in the next version by its identity, since entries are immutable; a changed one is new.

    Attributes:
        numbers: (n,) number of each entry.
        scopes: (n,) number of each entry's scope in ``scope_numbers``.
        seen: entries by number; later versions append to it.
        scope_numbers: numbers of scopes; later versions add to it.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.seen = _ordered(entries)
        self.scope_numbers = {"": 0}
        self.numbers: Indices = np.arange(len(self.seen), dtype=np.intp)
        self.scopes = self._scopes(self.seen)
        addresses = _addresses(self.seen)
        # Row by identity: identities ascend.
        self._rows = addresses.argsort()
        self._identities = addresses[self._rows]

    def __len__(self) -> int:
        return len(self.numbers)

    def over(self, entries: Iterable[Entry]) -> "Catalogue":
        """The catalogue of another version: costs little where few entries have come, changed or gone."""
        # A copy would touch every entry once more, which is most of the time where they are a million.
        given = entries if isinstance(entries, list) else list(entries)
        addresses = _addresses(given)
        # Stable sorting takes little time where entries were created in this order, as those of a bank are.
        order = addresses.argsort(kind="stable")
        identities = addresses[order]
        at = np.searchsorted(self._identities, identities)
        same = np.append(self._identities, -1)[at] == identities
        kept = np.zeros(len(self), bool)
        kept[self._rows[at[same]]] = True
        fresh = _ordered(given[index] for index in order[~same].tolist())
        if len(self.seen) + len(fresh) > 2 * (int(kept.sum()) + len(fresh)) + SLACK:
            return Catalogue(given)
        return self._merged(kept, fresh)

    def _merged(self, kept: npt.NDArray[np.bool_], fresh: Sequence[Entry]) -> "Catalogue":
        """The kept rows and new entries, in order."""
        merged = Catalogue(())
        merged.seen, merged.scope_numbers = self.seen, self.scope_numbers
        numbers = self.numbers[kept]
        places = [bisect_left(numbers, _rank(entry), key=lambda number: _rank(self.seen[number])) for entry in fresh]
        merged.numbers = np.insert(numbers, places, np.arange(len(self.seen), len(self.seen) + len(fresh)))
        merged.scopes = np.insert(self.scopes[kept], places, self._scopes(fresh))
        # The rows by identity: those of kept entries move, and those of new ones are put between them.
        new = np.array(places, np.intp) + np.arange(len(fresh))
        row_of = np.full(len(self), -1, np.intp)
        row_of[kept] = np.delete(np.arange(len(merged)), new)
        rows = row_of[self._rows]
        identities = self._identities[rows >= 0]
        rows = rows[rows >= 0]
        added = _addresses(fresh)
        order = added.argsort()
        at = np.searchsorted(identities, added[order])
        merged._identities = np.insert(identities, at, added[order])
        merged._rows = np.insert(rows, at, new[order])
        self.seen.extend(fresh)
        return merged

    def _scopes(self, entries: Sequence[Entry]) -> Indices:
        numbers = self.scope_numbers
        return np.array([numbers.setdefault(entry.scope, len(numbers)) for entry in entries], np.intp)


class PerEntry:
    """Number computed from each entry of a catalogue, once, whatever its versions."""

    def __init__(self, compute: Callable[[Sequence[Entry]], Indices]) -> None:
        self._compute = compute
        self._seen: list[Entry] | None = None
        self._values = Column(np.intp)

    def of(self, catalogue: Catalogue) -> Indices:
        """(n,) values of the entries of this version."""
        if catalogue.seen is not self._seen:
            self._seen, self._values = catalogue.seen, Column(np.intp)
        fresh = catalogue.seen[len(self._values) :]
        if fresh:
            self._values.extend(self._compute(fresh))
        return self._values.read()[catalogue.numbers]


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    active = sorted((entry for entry in entries if entry.active), key=attrgetter("id"))
    return sorted(active, key=attrgetter("edited"), reverse=True)


def _rank(entry: Entry) -> tuple[int, str]:
    return -entry.edited, entry.id


def _addresses(entries: Sequence[Entry]) -> npt.NDArray[np.int64]:
    """Identities of entries, which hold while ``seen`` refers to them."""
    return np.fromiter(map(id, entries), np.int64, len(entries))


NEW = Stats("")
"""Counters of an entry without any."""


@dataclass(frozen=True, slots=True)
class AdmissionState:
    """State that an admission reads beside the entries.

    Attributes:
        barred: ids that may not enter, see ``coevo.memory.admission.rulings.barred``.
        trials: candidates on trial, which are not among the entries.
        looks: earlier measurements of a lesson, the oldest first, by its id.
        span: highest minus lowest reward of an episode.
    """

    barred: frozenset[str] = frozenset()
    trials: Sequence[OnTrial] = ()
    looks: Callable[[str], Sequence[Verdict]] = lambda lesson: ()
    span: float = 1.0


NO_ADMISSION = AdmissionState()
"""Nothing is barred, on trial or was measured before."""


class Library:
    """Active entries in the order that breaks ties of scores: the later edit first, then the lower id.

    Attributes:
        catalogue: the entries with their numbers.
        clusters: observation clusters, or None.
        admission: what an admission reads beside the entries.
    """

    def __init__(
        self,
        entries: Iterable[Entry] | Catalogue,
        stats: Mapping[str, Stats] | None = None,
        clusters: Clusters | None = None,
        admission: AdmissionState = NO_ADMISSION,
    ) -> None:
        self.catalogue = entries if isinstance(entries, Catalogue) else Catalogue(entries)
        self.clusters = clusters
        self.admission = admission
        self._stats = {} if stats is None else stats

    def __len__(self) -> int:
        return len(self.catalogue)

    def some(self, rows: Indices) -> list[Entry]:
        """The entries of some rows, in their order."""
        return list(map(self.catalogue.seen.__getitem__, self.catalogue.numbers[rows].tolist()))

    def rows(self, scope: str | None) -> Indices:
        """Rows of the entries of a scope and of those without scope; all rows for None."""
        if scope is None:
            return np.arange(len(self), dtype=np.intp)
        scopes = self.catalogue.scopes
        return np.flatnonzero((scopes == 0) | (scopes == self.catalogue.scope_numbers.get(scope, 0)))

    @cached_property
    def entries(self) -> list[Entry]:
        """(n,) active entries."""
        return list(map(self.catalogue.seen.__getitem__, self.catalogue.numbers.tolist()))

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row by entry id."""
        return {entry.id: row for row, entry in enumerate(self.entries)}

    @cached_property
    def utility(self) -> Floats:
        """(n,) running estimates of the entries' worth."""
        return np.array([stats.utility for stats in self._counters], float)

    @cached_property
    def visits(self) -> Floats:
        """(n,) visits behind each estimate of utility."""
        return np.array([stats.visits for stats in self._counters], float)

    @cached_property
    def usefulness(self) -> Floats:
        """(n,) expected success rates of episodes that see an entry."""
        return np.array([stats.usefulness for stats in self._counters], float)

    @cached_property
    def _counters(self) -> list[Stats]:
        return [self._stats.get(entry.id, NEW) for entry in self.entries]
