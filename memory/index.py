"""An index over one version of the bank, in memory: what rollouts ask, and how the best answers are chosen."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from configs.retrieval import AnyRetrievalConfig, ClusterRetrievalConfig
from memory.clusters import Clusters
from memory.library import Floats, Library, Rows
from memory.retrieval.base import NEVER, Question, Scorer, scorer_of
from memory.stats import Stats
from memory.text import WORD
from records import draws
from records.entry import Entry
from records.task import BY_SCOPE, Key

FEW = 256
"""Scores that are sorted as they are: less work than to find the best ones first."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that matches a query, and how well."""

    entry: Entry
    score: float


class Index:
    """Top-k search over the active ones of ``entries``; later changes of the bank do not reach it.

    Attributes:
        config: how entries are scored, and how many are returned.
        key: which pool a task asks.
        tally: what only the scorer knows: how often it fell back on the library, explored, ...
        seconds: what it spent on parts of its own, by name.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        config: AnyRetrievalConfig,
        stats: Mapping[str, Stats] | None = None,
        clusters: Clusters | None = None,
        scorer: Scorer | None = None,
        key: Key = BY_SCOPE,
    ) -> None:
        """Args:
        entries: the bank; retired ones are left out.
        config: how entries are scored, and how many are returned.
        stats: their counters by id; an entry without any counts as new.
        clusters: observation clusters, where there are any.
        scorer: of an index with the same configuration, so that its texts are not read again.
        key: which pool a task asks.
        """
        self.config = config
        self.key = key
        self._library = Library(entries, stats, clusters)
        self._scorer = scorer or scorer_of(config)
        self._score = self._scorer.fit(self._library) if len(self._library) else None
        self._pools: dict[str | None, _Pool] = {}
        self.tally: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def over(
        self,
        entries: Iterable[Entry],
        stats: Mapping[str, Stats] | None = None,
        clusters: Clusters | None = None,
    ) -> "Index":
        """The same search over another version of the bank, at a small part of the cost of the first.

        Its clusters are those given, else the same.
        """
        clusters = self._library.clusters if clusters is None else clusters
        return Index(entries, self.config, stats, clusters, self._scorer, self.key)

    def search(self, query: str, scope: str, draw: draws.Key | None = None) -> list[Hit]:
        """The best entries, best first; equal scores: later edit, then lower id.

        With ``config.scoped`` only entries of this scope, and those without one, are searched, and the words that
        name the scope do not count: every entry of the pool has them, so they would only bring in what has nothing
        else to do with the query. ``draw`` decides what a scorer leaves to chance.
        """
        if self._score is None:
            return []
        pool = self._pool(scope if self.config.scoped else None)
        question = Question(query, pool.rows, pool.without, draw or draws.key("search"), self.tally, self.seconds)
        # Rounded, so that entries with the same words tie whatever the order of summation.
        scores = self._score(question).round(12)
        if scores.max(initial=NEVER) == NEVER:
            return []
        best = [place for places, k in pool.shelves for place in places[top(scores[places], k)].tolist()]
        return [Hit(self._library.entries[pool.rows[place]], float(scores[place])) for place in best]

    def _pool(self, scope: str | None) -> "_Pool":
        if scope not in self._pools:
            rows = self._library.rows(scope)
            shelves = _shelves([self._library.entries[row] for row in rows], self.config)
            self._pools[scope] = _Pool(rows, shelves, frozenset(WORD.findall((scope or "").lower())))
        return self._pools[scope]


@dataclass(frozen=True)
class _Pool:
    """What a question is asked of.

    Attributes:
        rows: of the library.
        shelves: places among them, with how many of each are returned.
        without: words that all of them have, lower-case.
    """

    rows: Rows
    shelves: tuple[tuple[Rows, int], ...]
    without: frozenset[str]


def top(scores: Floats, k: int) -> Rows:
    """Places of the k best scores above ``NEVER``, best first, the earlier of equals first."""
    if k == 0:
        return np.zeros(0, np.intp)
    if k >= len(scores) or len(scores) <= FEW:
        best = (-scores).argsort(kind="stable")[:k]
        return best[scores[best] > NEVER]
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    able = np.flatnonzero((scores >= least) & (scores > NEVER))
    return able[np.argsort(-scores[able], kind="stable")[:k]]


def _shelves(entries: Sequence[Entry], config: AnyRetrievalConfig) -> tuple[tuple[Rows, int], ...]:
    """Entries that compete with each other for places in the prompt, and how many there are."""
    if isinstance(config, ClusterRetrievalConfig):
        warning = np.array([entry.zone == "warning" for entry in entries], bool)
        return (np.flatnonzero(~warning), config.k), (np.flatnonzero(warning), config.warnings)
    if config.general is not None:
        general = np.array([not entry.scope for entry in entries], bool)
        return (np.flatnonzero(~general), config.k), (np.flatnonzero(general), config.general)
    return ((np.arange(len(entries)), config.k),)
