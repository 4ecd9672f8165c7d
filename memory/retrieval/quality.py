"""Quality of retrieval (CoEvo-RL Table 2): rank of an entry that was distilled from the task that asks.

A query is the instruction of a training task. Right are the entries with an episode of this task among their sources.
Entries that do not match are not retrieved: their reciprocal rank is 0. Entries with equal scores, rounded as for a
prompt, may stand in any order: a measure is its mean over all orders, so that it rewards no arbitrary one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import numpy.typing as npt

from coevo.configs.bank.retrieval_config import (
    AnyRetrievalConfig,
    Bm25Config,
    Bm25EmbeddingConfig,
    EmbeddingConfig,
    EncoderConfig,
    FieldWeights,
    OutsideRetrievalConfig,
    TfidfConfig,
    TfidfEmbeddingConfig,
)
from coevo.memory.library import Library
from coevo.memory.retrieval.index import common_words
from coevo.memory.retrieval.scorer import NEVER, BankQuery, Score
from coevo.records.arrays import Floats, Indices
from coevo.records.draws import Key, extend, generator, key
from coevo.records.intervals import Interval, of_share
from coevo.records.task import About
from coevo.records.task import KeyFunction as PoolKey

QUERIES = 1000
"""Most queries that are measured."""


@dataclass(frozen=True)
class Query:
    """The instruction of a task, and the part of the library that it searches.

    Attributes:
        task: id of the task.
        text: its instruction.
        rows: (n,) rows that may be returned, ascending.
        right: those of them that were distilled from the task, at least one.
        without: words to ignore, since every row has them.
    """

    task: str
    text: str
    rows: Indices
    right: Indices
    without: frozenset[str]


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality over queries, each measure with its 95 % interval.

    Attributes:
        queries: number of queries.
        hit_at_1: probability that the first entry is right.
        hit_at_3: probability that one of the first three is right.
        mrr: mean reciprocal rank of the first right entry.
        precision: expected share of right ones among the entries that are retrieved; 0 where none is.
    """

    queries: int
    hit_at_1: Interval
    hit_at_3: Interval
    mrr: Interval
    precision: Interval


def by_text(own: AnyRetrievalConfig) -> list[AnyRetrievalConfig]:
    """Every retrieval that ranks by the texts of query and entry alone.

    The others rank by the outcomes of episodes, or are asked with observations: utility, SimUtil-UCB, two phases and
    clusters. A run's own retrieval from another package is measured, too; it gets no outcomes here.

    Args:
        own: a run's retrieval, whose settings are kept; its weights and its encoder also hold for the other types.
    """
    weights, encoder = getattr(own, "weights", FieldWeights()), getattr(own, "encoder", EncoderConfig())
    every: list[AnyRetrievalConfig] = [
        TfidfConfig(weights=weights),
        Bm25Config(type="bm25", weights=weights),
        EmbeddingConfig(type="embedding", encoder=encoder),
        TfidfEmbeddingConfig(type="tfidf+embedding", weights=weights, encoder=encoder),
        Bm25EmbeddingConfig(type="bm25+embedding", weights=weights, encoder=encoder),
    ]
    mine = [own] if isinstance(own, OutsideRetrievalConfig) else []
    return [*(own if own.type == each.type else each for each in every), *mine]


def chance(question: BankQuery) -> Floats:
    """Score function of a random order, the baseline: all entries match alike."""
    return np.zeros(len(question.rows))


def queries_of(library: Library, tasks: Mapping[str, About], pool: PoolKey | None) -> list[Query]:
    """One query per task that an active entry was distilled from, in the order of the tasks.

    Args:
        library: entries to search.
        tasks: training tasks by the ids of their episodes.
        pool: key of the pool that a task searches; None searches the whole library.
    """
    right: dict[str, set[int]] = defaultdict(set)
    for row, entry in enumerate(library.entries):
        for source in entry.sources:
            if source in tasks:
                right[tasks[source].id].add(row)
    found = []
    for task in {task.id: task for task in tasks.values() if task.id in right}.values():
        scope = None if pool is None else pool(task)
        rows = library.rows(scope)
        shared = np.intersect1d(rows, np.array(sorted(right[task.id]), np.intp))
        if len(shared):
            found.append(Query(task.id, task.instruction, rows, shared, common_words(scope)))
    return found


def some(every: list[Query], seed: int) -> list[Query]:
    """At most ``QUERIES`` of the queries, drawn at random."""
    if len(every) <= QUERIES:
        return every
    places = generator(key(seed, "retrieval", "queries")).choice(len(every), QUERIES, replace=False)
    return [every[index] for index in sorted(places.tolist())]


def usual_sizes(queries: Iterable[Query]) -> list[int]:
    """5, 10, 20, 50, 100 and so on, below the largest pool."""
    largest = max((len(query.rows) for query in queries), default=0)
    return [digit * 10**power for power in range(8) for digit in (1, 2, 5) if 5 <= digit * 10**power < largest]


def measure(score: Score, queries: Sequence[Query], size: int | None, k: int, seed: int) -> Quality | None:
    """Quality with pools of a size; None if no query has a pool so large.

    A pool holds a right entry and others, drawn at random from the rows of the query, other right ones among them. Its
    words have the weights that they have in the whole library, as in any pool. Every scorer gets the same pools.

    Args:
        score: score function, fitted to the library of the queries.
        queries: queries; those with fewer rows than the size are left out.
        size: number of entries of a pool; None for all rows.
        k: number of entries that are retrieved.
        seed: seed of the run, for the pools.
    """
    draw = key(seed, "retrieval", "pools")
    pools = [(query, _pool(query, size, draw)) for query in queries if size is None or len(query.rows) >= size]
    if not pools:
        return None
    measures = zip(*(_outcome(score, query, pool, k, draw) for query, pool in pools), strict=True)
    return Quality(len(pools), *(of_share(fmean(values), len(pools)) for values in measures))


def expected(scores: Floats, right: npt.NDArray[np.bool_]) -> tuple[float, float, float]:
    """Expectations over the orders of equal scores: first right entry at rank 1, at most 3, and reciprocal rank."""
    best = scores[right].max(initial=NEVER)
    if best == NEVER:
        return 0.0, 0.0, 0.0
    above, tied, good = int((scores > best).sum()), int((scores == best).sum()), int((scores[right] == best).sum())
    before = np.arange(tied - good + 1)  # wrong entries with the same score that stand before the first right one
    none_yet = np.concatenate([[1.0], np.cumprod((tied - good - before[:-1]) / (tied - before[:-1]))])
    chances, ranks = none_yet * good / (tied - before), above + 1 + before
    return float(chances[ranks <= 1].sum()), float(chances[ranks <= 3].sum()), float((chances / ranks).sum())


def precision(scores: Floats, right: npt.NDArray[np.bool_], k: int) -> float:
    """Expected share of right entries among the best ``k`` that match, over the orders of equal scores."""
    count = min(k, int((scores > NEVER).sum()))
    if count == 0:
        return 0.0
    last = np.sort(scores)[-count]
    above, tied = scores > last, scores == last
    return float(right[above].sum() + (count - above.sum()) * right[tied].mean()) / count


def _pool(query: Query, size: int | None, draw: Key) -> Indices:
    if size is None:
        return query.rows
    rng = generator(extend(draw, "pool", size, query.task))
    right = rng.choice(query.right)
    others = rng.choice(query.rows[query.rows != right], size - 1, replace=False)
    return np.sort(np.append(others, right))


def _outcome(score: Score, query: Query, pool: Indices, k: int, draw: Key) -> tuple[float, float, float, float]:
    question = BankQuery(query.text, pool, query.without, extend(draw, query.task), Counter(), defaultdict(float))
    scores, right = score(question).round(12), np.isin(pool, query.right)
    return *expected(scores, right), precision(scores, right, k)
