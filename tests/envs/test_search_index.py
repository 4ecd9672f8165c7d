"""The search finds what BM25 scores highest, whatever the number of texts."""

from math import log

import pytest

from coevo.envs.search_index import K1, B, SearchIndex, words_of
from coevo.records.draws import generator, key

WORDS = words_of("lamp desk chair table red blue green wood metal free soft small large easy long")


def drawn(count, rng):
    return [
        " ".join(WORDS[index] for index in rng.integers(len(WORDS), size=rng.integers(1, 12))) for _ in range(count)
    ]


def scored(texts, query):
    """Score of every text by the formula, term by term."""
    bags = [words_of(text) for text in texts]
    mean = sum(map(len, bags)) / len(bags)
    scores = [0.0] * len(texts)
    for word in set(words_of(query)):
        holding = sum(word in bag for bag in bags)
        rarity = log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
        for index, bag in enumerate(bags):
            norm = K1 * (1 - B + B * len(bag) / mean)
            scores[index] += rarity * bag.count(word) / (bag.count(word) + norm)
    return scores


@pytest.mark.parametrize("count", [1, 7, 63, 64, 65, 700, 5000])
def test_the_best_are_found_in_order(count):
    rng = generator(key("search", count))
    texts = drawn(count, rng)
    index = SearchIndex(texts)
    for query in (*drawn(4, rng), "Lamps, and the DESK!"):
        scores = scored(texts, query)
        found = index.search(query, 50)
        assert len(found) == min(50, sum(score > 0 for score in scores))
        ranked = sorted(scores, reverse=True)[: len(found)]
        assert [scores[number] for number in found] == pytest.approx(ranked, rel=1e-5)


def test_equal_texts_keep_their_order_and_nothing_is_found_for_nothing():
    index = SearchIndex(["red lamp"] * 200 + ["blue lamp"])
    assert index.search("red lamp", 50) == tuple(range(50))
    assert index.search("blue", 50) == (200,)
    for query in ("", "the of and", "unknown", "\x00", "?" * 1000):
        assert index.search(query, 50) == ()
