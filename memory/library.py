"""The library: active entries of one version of the bank as rows, with the values that scorers need."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coevo.memory.catalogue import Catalogue
from coevo.memory.clusters import Clusters
from coevo.memory.stats import Stats
from coevo.memory.trials import OnTrial
from coevo.records.arrays import Floats, Indices
from coevo.records.entry import Entry, Verdict

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
