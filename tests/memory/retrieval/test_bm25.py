"""BM25 against the formula written out."""

import math

import pytest
from support.entries import bank, entry, questions, ranked

from coevo.configs.bank.retrieval_config import Bm25Config, FieldWeights
from coevo.memory.retrieval import postings
from coevo.memory.retrieval.index import Index

FIELDS = ("strategy", "condition", "example", "keywords")


def reference(entries, query, config):
    scores = {}
    for e in entries:
        score = 0.0
        for name in FIELDS:
            texts = {other.id: getattr(other, name).split() for other in entries}
            mean = sum(map(len, texts.values())) / len(entries)
            for word in query.split():
                times, df = texts[e.id].count(word), sum(word in held for held in texts.values())
                if times:
                    idf = math.log(1 + (len(entries) - df + 0.5) / (df + 0.5))
                    damping = config.k1 * (1 - config.b + config.b * len(texts[e.id]) / mean)
                    score += getattr(config.weights, name) * idf * times * (config.k1 + 1) / (times + damping)
        if score > 0:
            scores[e] = score
    return scores


def test_worked_value():
    # One field; "heat" is in one of two entries, of length 1 where the mean is 1.5.
    config = Bm25Config(type="bm25", weights=FieldWeights(strategy=1, condition=0, example=0, keywords=0))
    (hit,) = Index([entry("heat"), entry("cool mug")], config).search("heat", "")
    idf = math.log(1 + 1.5 / 1.5)
    assert hit.score == pytest.approx(idf * 2.5 / (1 + 1.5 * (0.25 + 0.75 / 1.5)), abs=1e-11)


@pytest.mark.parametrize(("b", "common"), [(0.0, 128), (0.75, 128), (1.0, 128), (0.75, 5)])
def test_ranking_and_scores_equal_the_reference(b, common, monkeypatch):
    monkeypatch.setattr(postings, "COMMON", common)
    entries, _ = bank(50)
    config = Bm25Config(type="bm25", k=8, b=b, k1=1.2)
    index = Index(entries, config)
    for query in questions(15):
        expected = reference(entries, query, config)
        hits = index.search(query, "")
        assert [hit.entry.id for hit in hits] == ranked(expected, 8)
        assert [hit.score for hit in hits] == pytest.approx([expected[hit.entry] for hit in hits], abs=1e-10)


def test_a_bank_without_words_finds_nothing():
    assert Index([entry("...")], Bm25Config(type="bm25")).search("mug", "") == []
