"""Indexes that follow a bank in steps, and shortcuts of large ones: the same results, to the last bit."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.entries import bank, entry, questions

from coevo.configs.bank.retrieval_config import Bm25Config, FieldWeights, SimUtilUcbConfig, TfidfConfig, TfidfSimilarity
from coevo.memory.retrieval import lexicon, postings, tfidf
from coevo.memory.retrieval.index import Index
from coevo.records.draws import generator, key

WEIGHTS = FieldWeights(strategy=1.0, condition=0.7, example=0, keywords=2.0)
CONFIGS = {
    "tfidf": TfidfConfig(k=7, weights=WEIGHTS),
    "bm25": Bm25Config(type="bm25", k=7, weights=WEIGHTS),
    "tfidf unscoped": TfidfConfig(k=3, scoped=False),
    "bm25 unscoped": Bm25Config(type="bm25", k=3, scoped=False),
    "general": TfidfConfig(k=4, general=2),
    "similarity": SimUtilUcbConfig(type="simutil-ucb", similarity=TfidfSimilarity(type="tfidf"), threshold=0.0),
}
SCOPES = ("", "lotus", "maple")
COMMONNESS = 1 / np.arange(1, 41)


def answers(index, count=25):
    return [index.search(question, scope) for question in questions(count) for scope in SCOPES]


@cache
def common_bank(count):
    """Words as common as in a language, so that some are in most entries and some in few."""
    draws = generator(key(5, "common"))

    def text(length):
        return " ".join(draws.choice([f"w{n}" for n in range(40)], length, p=COMMONNESS / COMMONNESS.sum()))

    return [
        entry(f"{text(8)} n{n}", text(int(draws.integers(4))), "", text(3), SCOPES[n % 3], n % 4) for n in range(count)
    ]


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("small", "common"), [(4096, 128), (0, 3), (20, 0)])
def test_an_index_refreshed_in_steps_equals_one_built_from_scratch(name, small, common, monkeypatch):
    monkeypatch.setattr(lexicon, "SMALL", small)
    monkeypatch.setattr(postings, "COMMON", common)
    entries, stats = bank(120, scopes=SCOPES)
    first = index = Index(entries[:60], CONFIGS[name], stats)
    before = answers(index, 10)
    for step in range(1, 4):
        held = entries[step * 5 : 60 + step * 10]
        held[step] = replace(held[step], condition="w1 w2 w2 changed")
        held[-step] = replace(held[-step], retired=3)
        index = index.over(held, stats)
        assert answers(index, 10) == answers(Index(held, CONFIGS[name], stats), 10)
    assert answers(first, 10) == before


@pytest.mark.parametrize(
    ("small", "counts", "segments"),
    [
        (0, (80,), 2),  # of the new entries there are one in eight of the first
        (0, (80, 85), 2),
        (0, (79,), 1),  # more than one in eight
        (0, (40, 80), 2),
        (89, (80,), 2),
        (90, (80,), 1),  # so few that they are one segment in any case
    ],
)
def test_segments_do_not_change_results(small, counts, segments, monkeypatch):
    entries, _ = bank(90)
    expected = answers(Index(entries, Bm25Config(type="bm25")))
    monkeypatch.setattr(lexicon, "SMALL", small)
    index = Index([], Bm25Config(type="bm25"))
    for count in (*counts, 90):
        index = index.over(entries[:count])
    assert len(index.score._counts.segments) == segments
    assert answers(index) == expected


@pytest.mark.parametrize("name", ["tfidf", "bm25"])
def test_entries_counted_in_small_parts_have_the_same_scores(name, monkeypatch):
    entries, _ = bank(60)
    expected = answers(Index(entries, CONFIGS[name]))
    monkeypatch.setattr(lexicon, "CHUNK", 7)
    monkeypatch.setattr(tfidf, "CHUNK", 7)
    assert answers(Index(entries[:20], CONFIGS[name]).over(entries)) == expected


@pytest.mark.parametrize("name", ["tfidf", "bm25", "tfidf unscoped", "bm25 unscoped"])
def test_the_best_are_those_of_a_full_reading(name, monkeypatch):
    entries, kinds = common_bank(1500), [CONFIGS[name].model_copy(update={"k": k}) for k in (1, 5, 100)]
    indexes = [Index(entries[:1400], kind).over(entries[50:]) for kind in kinds]
    expected = [answers(index) for index in indexes]
    monkeypatch.setattr(postings, "MAX_EXHAUSTIVE_POSTINGS", -1)
    monkeypatch.setattr(postings, "SAMPLE", 1)
    for read in (1, 1 << 14):
        monkeypatch.setattr(postings, "READ", read)
        assert [answers(index) for index in indexes] == expected


@pytest.mark.parametrize("name", ["tfidf unscoped", "bm25"])
def test_few_entries_are_sorted_and_many_are_searched_for_the_same(name, monkeypatch):
    index = Index(common_bank(300), CONFIGS[name])
    expected = answers(index)
    monkeypatch.setattr(postings, "MIN_ENTRIES_SORTED", 0)
    assert answers(index) == expected


@pytest.mark.parametrize("name", ["tfidf unscoped", "bm25 unscoped"])
def test_the_best_are_those_of_all_scores(name):
    """Against the scores of the whole library, sorted."""
    index = Index(common_bank(700), CONFIGS[name].model_copy(update={"k": 9}))
    everything = Index(common_bank(700), CONFIGS[name].model_copy(update={"k": 700}))
    for question in questions(40):
        assert index.search(question, "") == everything.search(question, "")[:9]


def test_common_words_are_skipped(monkeypatch):
    monkeypatch.setattr(postings, "MAX_EXHAUSTIVE_POSTINGS", -1)
    monkeypatch.setattr(postings, "READ", 100)
    entries = [entry(f"the rare{n} thing", edited=n % 5) for n in range(2000)]
    index = Index(entries, Bm25Config(type="bm25", k=1, scoped=False))
    added, add_to = [], postings.ScorePart.add_to
    monkeypatch.setattr(postings.ScorePart, "add_to", lambda part, sums: (added.append(part.size), add_to(part, sums)))
    looked, of = [], postings.ScorePart.of
    monkeypatch.setattr(
        postings.ScorePart, "of", lambda part, numbers: (looked.append(len(numbers)), of(part, numbers))[1]
    )
    (hit,) = index.search("the thing rare7", "")
    assert hit.entry == entries[7]
    assert sorted(added) == [1, 1, 2000]  # one of the two common words for a bound, none for the result
    assert max(looked) >= 1 + 64  # whose scores give the bound
