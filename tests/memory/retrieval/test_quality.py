"""Hit@k and reciprocal ranks against their definitions; which entries are right, and what a pool holds."""

from dataclasses import replace
from itertools import permutations
from statistics import fmean

import numpy as np
import pytest
from support.entries import bank, entry

from coevo.configs.bank.retrieval_config import (
    Bm25Config,
    EncoderConfig,
    FieldWeights,
    TfidfConfig,
    TfidfEmbeddingConfig,
)
from coevo.memory.library import Library
from coevo.memory.retrieval.index import Index
from coevo.memory.retrieval.quality import by_text, chance, expected, measure, precision, queries_of, some, usual_sizes
from coevo.memory.retrieval.scorer import NEVER, SCORERS, scorer_of
from coevo.records.draws import generator, key
from coevo.records.task import BY_SCOPE, Task


def counted(scores, right):
    """Hit@1, Hit@3 and reciprocal rank: the mean over all orders of the entries that agree with the scores."""
    found = []
    for order in permutations(range(len(scores))):
        ranked = [scores[place] for place in order]
        if ranked == sorted(ranked, reverse=True):
            rank = next((n + 1 for n, at in enumerate(order) if right[at] and scores[at] > NEVER), np.inf)
            found.append((rank == 1, rank <= 3, 1 / rank))
    return [fmean(map(float, each)) for each in zip(*found, strict=True)]


@pytest.mark.parametrize("seed", range(40))
def test_measures_are_means_over_the_orders_of_equal_scores(seed):
    rng = generator(key(seed, "ties"))
    scores = rng.choice([NEVER, 0.0, 0.5, 1.0], 6)
    right = rng.random(6) < 0.4
    right[rng.integers(6)] = True
    assert expected(scores, right) == pytest.approx(counted(scores, right))


def test_worked_values():
    right = np.array([False, False, True, False])
    assert expected(np.array([0.9, 0.8, 0.7, 0.6]), right) == (0.0, 1.0, pytest.approx(1 / 3))
    assert expected(np.array([0.9, 0.7, 0.7, 0.7]), right) == pytest.approx((0.0, 2 / 3, (1 / 2 + 1 / 3 + 1 / 4) / 3))
    assert expected(np.array([0.9, 0.8, NEVER, 0.6]), right) == (0.0, 0.0, 0.0)


def task(number, scope="lotus", instruction=None):
    return Task("homerules", "heat", instruction or f"w{number} w{number + 1}", scope, "train", {"n": number})


def source(task, replica=0):
    return f"1/rollout-0/{task.id}/{replica}"


def test_right_are_the_entries_that_the_task_was_a_source_of():
    first, second, third = task(1), task(2), task(3, "ivy")
    told = [
        replace(entry("a", scope="lotus"), sources=(source(first, 0), source(second))),
        replace(entry("b", scope="lotus"), sources=(source(first, 1), "gone/from/here/0")),
        replace(entry("c", scope="ivy"), sources=(source(third),)),
        replace(entry("d"), sources=()),
        replace(entry("e", scope="lotus"), sources=(source(third),)),
    ]
    library = Library(told)
    known = {source(each, replica): each for each in (first, second, third) for replica in (0, 1)}

    def texts(rows):
        return sorted(entry.strategy for entry in library.some(rows))

    found = queries_of(library, known, BY_SCOPE)
    assert [(query.task, query.text) for query in found] == [(e.id, e.instruction) for e in (first, second, third)]
    assert [texts(query.right) for query in found] == [["a", "b"], ["a"], ["c"]]
    assert [texts(query.rows) for query in found] == [["a", "b", "d", "e"], ["a", "b", "d", "e"], ["c", "d"]]
    assert [query.without for query in found] == [{"lotus"}, {"lotus"}, {"ivy"}]
    whole = queries_of(library, known, None)
    assert [texts(query.right) for query in whole] == [["a", "b"], ["a"], ["c", "e"]]
    assert {len(query.rows) for query in whole} == {5}
    assert queries_of(library, {}, None) == []


def made(count, words=9):
    """A library, and queries with the first words of their entry and another one."""
    entries, _ = bank(count, 3)
    said = [" ".join(each.strategy.split()[:words]) for each in entries[: count // 2]]
    tasks = [task(n, instruction=f"{text} w{n % 40} unknown") for n, text in enumerate(said)]
    told = [replace(each, sources=(source(one),)) for each, one in zip(entries, tasks, strict=False)]
    library = Library([*told, *entries[count // 2 :]])
    return library, queries_of(library, {source(one): one for one in tasks}, None)


@pytest.mark.parametrize("config", [TfidfConfig(k=1000, scoped=False), Bm25Config(type="bm25", k=1000, scoped=False)])
def test_in_the_whole_bank_ranks_are_those_of_the_index(config):
    library, queries = made(60)
    index = Index(library.entries, config)
    ranks = []
    for query in queries:
        (right,) = query.right
        hits = index.search(query.text, "")
        score = next(hit.score for hit in hits if hit.entry is library.entries[right])
        ranks.append(fmean(1 / (n + 1) for n, hit in enumerate(hits) if hit.score == score))
    found = measure(scorer_of(config).fit(library), queries, None, 4, 0)
    assert found.queries == len(queries) == 30
    assert found.mrr.mean == pytest.approx(fmean(ranks))
    assert 0.2 < found.hit_at_1.mean < 1


@pytest.mark.parametrize("size", [1, 4, 20])
def test_a_random_order_finds_one_of_n_by_chance(size):
    _, queries = made(40)
    found = measure(chance, queries, size, 4, 0)
    assert found.hit_at_1.mean == pytest.approx(1 / size)
    assert found.hit_at_3.mean == pytest.approx(min(1, 3 / size))
    assert found.mrr.mean == pytest.approx(sum(1 / n for n in range(1, size + 1)) / size)
    assert found.precision.mean == pytest.approx(1 / size)


def test_every_scorer_gets_the_same_pools_and_every_pool_a_right_entry():
    _, queries = made(40)
    seen = {"one": [], "other": []}
    for name, pools in seen.items():

        def score(question, name=name, pools=pools):
            pools.append(question.rows.tolist())
            return np.arange(len(question.rows)) * (1.0 if name == "one" else -1.0)

        measure(score, queries, 7, 4, 0)
    assert seen["one"] == seen["other"]
    for rows, query in zip(seen["one"], queries, strict=True):
        assert rows == sorted(set(rows))
        assert len(rows) == 7
        assert set(query.right.tolist()) <= set(rows)
    others = []
    measure(lambda question: others.append(question.rows.tolist()) or chance(question), queries, 7, 4, 1)
    assert others != seen["one"]


def test_queries_with_fewer_entries_are_left_out():
    _, queries = made(40)
    small = [replace(queries[0], rows=queries[0].right)]
    assert measure(chance, [*small, *queries[1:]], 2, 4, 0).queries == len(queries) - 1
    assert measure(chance, small, 2, 4, 0) is None
    assert measure(chance, small, None, 4, 0).hit_at_1.mean == 1.0
    assert measure(chance, queries, 40, 4, 0).queries == len(queries), "a pool of all 40 entries"
    assert measure(chance, queries, 41, 4, 0) is None


def test_larger_pools_are_harder():
    library, queries = made(300, words=2)
    score = scorer_of(TfidfConfig()).fit(library)
    ranks = [measure(score, queries, size, 4, 0).mrr.mean for size in (5, 20, 100, None)]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[-1] + 0.1


def test_settings_of_the_run_hold_where_they_apply():
    weights, encoder = FieldWeights(keywords=0), EncoderConfig(fields=("keywords",))
    own = TfidfEmbeddingConfig(type="tfidf+embedding", weights=weights, encoder=encoder, balance=0.25)
    every = by_text(own)
    assert own in every
    assert [each.weights for each in every if hasattr(each, "weights")] == [weights] * 4
    assert [each.encoder for each in every if hasattr(each, "encoder")] == [encoder] * 3
    assert {each.type for each in every} == set(SCORERS.parts) - {"utility", "simutil-ucb", "two-phase", "cluster"}


@pytest.mark.parametrize("seed", range(40))
def test_precision_is_the_mean_over_the_orders_of_equal_scores(seed):
    rng = generator(key(seed, "ties"))
    scores, k = rng.choice([NEVER, 0.0, 0.5, 1.0], 6), int(rng.integers(1, 8))
    right, shares = rng.random(6) < 0.4, []
    for order in permutations(range(6)):
        ranked = [scores[place] for place in order]
        if ranked == sorted(ranked, reverse=True):
            retrieved = [right[at] for at in order if scores[at] > NEVER][:k]
            shares.append(fmean(map(float, retrieved)) if retrieved else 0.0)
    assert precision(scores, right, k) == pytest.approx(fmean(shares))


def test_worked_values_of_precision():
    right = np.array([True, False, True, False])
    assert precision(np.array([0.9, 0.8, 0.7, NEVER]), right, 2) == 0.5
    assert precision(np.array([0.9, 0.8, 0.7, NEVER]), right, 4) == pytest.approx(2 / 3)
    assert precision(np.array([0.9, 0.7, 0.7, 0.7]), right, 2) == pytest.approx((1 + 1 / 3) / 2)
    assert precision(np.full(4, NEVER), right, 2) == 0.0


def test_so_many_queries_are_drawn_and_the_usual_sizes_are_below_the_largest_pool(monkeypatch):
    _, queries = made(60)
    assert some(queries, 0) == queries
    assert usual_sizes(queries) == [5, 10, 20, 50]
    assert usual_sizes([]) == []
    assert [usual_sizes([replace(queries[0], rows=range(count))]) for count in (5, 6, 50)] == [[], [5], [5, 10, 20]]
    assert usual_sizes([replace(queries[0], rows=range(60_000_000))])[-1] == 50_000_000
    assert len(some(queries[:1] * 1001, 0)) == 1000
    monkeypatch.setattr("coevo.memory.retrieval.quality.QUERIES", 10)
    drawn = some(queries, 0)
    assert len({each.task for each in drawn}) == 10
    assert drawn == [each for each in queries if each in drawn]
    assert some(queries, 1) != drawn
