"""In-memory index over one version of the bank, which rollouts search."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from coevo.configs.bank.retrieval_config import AnyRetrievalConfig, ClusterRetrievalConfig
from coevo.memory.clusters import Clusters
from coevo.memory.library import Catalogue, Library
from coevo.memory.retrieval.scorer import ANY, NEVER, NOWHERE, BankQuery, BestScore, Score, Scorer, scorer_of, top
from coevo.memory.stats import Stats
from coevo.memory.text import terms
from coevo.records import draws
from coevo.records.arrays import Floats, Indices
from coevo.records.entry import Entry
from coevo.records.task import BY_SCOPE, KeyFunction

_Shelves = tuple[tuple[Indices, int], ...]
"""Positions in the rows of a pool, with the number of results from each."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that matches a query, and its score."""

    entry: Entry
    score: float


class Index:
    """Top-k search over the active ones of ``entries``; later changes of the bank do not affect it.

    Attributes:
        config: settings of scoring, and the number of results.
        key: pool that a task searches.
        library: the active entries.
        score: score function, fitted to them.
        tally: counts of the scorer, such as fallbacks to the library or explorations.
        seconds: time of the scorer's own parts, by name.
    """

    def __init__(
        self,
        entries: Iterable[Entry] | Catalogue,
        config: AnyRetrievalConfig,
        stats: Mapping[str, Stats] | None = None,
        clusters: Clusters | None = None,
        scorer: Scorer | None = None,
        key: KeyFunction = BY_SCOPE,
    ) -> None:
        """Args:
        entries: entries of the bank; retired ones are skipped.
        config: settings of scoring, and the number of results.
        stats: counters by id; an entry without any counts as new.
        clusters: observation clusters, or None.
        scorer: scorer of an index with the same configuration, to reuse its texts.
        key: pool that a task searches.
        """
        self.config = config
        self.key = key
        self.library = Library(entries, stats, clusters)
        self._scorer = scorer or scorer_of(config)
        self.score: Score = self._scorer.fit(self.library) if len(self.library) else _nothing
        self._best = self.score if isinstance(self.score, BestScore) else None
        self._pools: dict[str | None, _Pool] = {}
        self.tally: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def over(
        self,
        entries: Iterable[Entry],
        stats: Mapping[str, Stats] | None = None,
        clusters: Clusters | None = None,
    ) -> "Index":
        """Index over another version of the bank; work is done for entries that have come, changed or gone.

        Its clusters are those given, else the same.
        """
        clusters = self.library.clusters if clusters is None else clusters
        return Index(self.library.catalogue.over(entries), self.config, stats, clusters, self._scorer, self.key)

    def search(self, query: str, scope: str, draw: draws.Key | None = None, k: int | None = None) -> list[Hit]:
        """The best entries, best first; ties: later edit, then lower id.

        With ``config.scoped`` only entries of this scope and those without scope are searched, and the words of the
        scope's name do not count: every entry of the pool has them, so they would only add entries that match nothing
        else of the query. ``draw`` keys the random choices of a scorer. ``k`` replaces the configured number of
        results, of each kind where entries of several kinds have places of their own.
        """
        pool = self._pool(scope if self.config.scoped else None)
        shelves = pool.shelves if k is None else tuple((places, k) for places, _ in pool.shelves)
        question = BankQuery(query, pool.rows, pool.without, draw or ANY, self.tally, self.seconds)
        places, scores = self._found(question, shelves)
        return list(map(Hit, self.library.some(pool.rows[places]), scores.tolist()))

    def _found(self, question: BankQuery, shelves: _Shelves) -> tuple[Indices, Floats]:
        """Positions in ``question.rows`` and scores of the results.

        Scores are rounded, so that entries with the same words tie whatever the order of summation.
        """
        if self._best is not None and len(shelves) == 1:
            return _best_of(self._best, question, shelves[0][1])
        scores = self.score(question).round(12)
        if scores.max(initial=NEVER) == NEVER:
            return NOWHERE, scores[NOWHERE]
        best = np.concatenate([places[top(scores[places], k)] for places, k in shelves])
        return best, scores[best]

    def _pool(self, scope: str | None) -> "_Pool":
        if scope not in self._pools:
            rows = self.library.rows(scope)
            shelves = _shelves(self.library, rows, self.config)
            self._pools[scope] = _Pool(rows, shelves, common_words(scope))
        return self._pools[scope]


@dataclass(frozen=True)
class _Pool:
    """The part of the library that a question searches.

    Attributes:
        rows: rows of the library.
        shelves: positions within ``rows``, with the number of results from each.
        without: lower-case words that all of them share.
    """

    rows: Indices
    shelves: _Shelves
    without: frozenset[str]


def _best_of(score: BestScore, question: BankQuery, k: int) -> tuple[Indices, Floats]:
    able, scores = score.best(question, k)
    scores = scores.round(12)
    best = top(scores, k)
    return able[best], scores[best]


def common_words(scope: str | None) -> frozenset[str]:
    """Lower-case words that all entries of a pool share: those of its scope's name, none without a scope."""
    return frozenset(terms(scope or ""))


def _nothing(question: BankQuery) -> Floats:
    return np.full(len(question.rows), NEVER)


def _shelves(library: Library, rows: Indices, config: AnyRetrievalConfig) -> _Shelves:
    """Positions of the entries that compete for places in the prompt, with the number of places."""
    if isinstance(config, ClusterRetrievalConfig):
        warning = np.array([entry.zone == "warning" for entry in library.some(rows)], bool)
        return (np.flatnonzero(~warning), config.k), (np.flatnonzero(warning), config.warnings)
    if config.general is not None:
        general = library.catalogue.scopes[rows] == 0
        return (np.flatnonzero(~general), config.k), (np.flatnonzero(general), config.general)
    return ((np.arange(len(rows)), config.k),)
