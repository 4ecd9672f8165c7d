"""Similarity of token sequences: the exact scan written out, and the traps that characters set."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.memory.similarity import MAX_UNBOUNDED_TEXTS, TOKEN, SimilarityIndex

WORDS = ("go", "see", "mug", "safe", ".", ",", "at", "hall")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=8)


def reference(a, b):
    """2 LCS / (|a| + |b|) by dynamic programming."""
    a, b = TOKEN.findall(a), TOKEN.findall(b)
    row = [0] * (len(b) + 1)
    for x in a:
        before = row
        row = [0]
        for j, y in enumerate(b):
            row.append(before[j] + 1 if x == y else max(before[j + 1], row[j]))
    return 2 * row[-1] / (len(a) + len(b)) if a or b else 1.0


def index(texts):
    made = SimilarityIndex()
    for text in texts:
        made.add(text)
    return made


def similarity(a, b):
    _, (value,) = index([a]).above(b, 0.0)
    return value


@pytest.mark.parametrize("few", [0, MAX_UNBOUNDED_TEXTS], ids=["bound", "as they are"])
@settings(deadline=None)
@given(
    texts=TEXTS,
    asked=st.lists(st.sampled_from(["go", "see", "mug", "new"]), max_size=12).map(" ".join),
    least=st.floats(0, 1),
    since=st.integers(0, 8),
)
def test_the_bound_hides_nothing_from_an_exact_scan(few, texts, asked, least, since):
    with patch("coevo.memory.similarity.MAX_UNBOUNDED_TEXTS", few):
        check_against_a_scan(texts, asked, least, since)


def check_against_a_scan(texts, asked, least, since):
    scores = [reference(text, asked) for text in texts]
    numbers, found = index(texts).above(asked, least)
    assert numbers.tolist() == [n for n, score in enumerate(scores) if score >= least]
    assert all(abs(scores[n] - score) < 1e-12 for n, score in zip(numbers, found, strict=True))
    able = [n for n, score in enumerate(scores) if score >= least]
    expected = max(able, key=lambda n: (scores[n], -n)) if able else -1
    assert index(texts).nearest(asked, least)[0] == expected
    late = [n for n in able if n >= since]
    assert index(texts).above(asked, least, since)[0].tolist() == late


@pytest.mark.parametrize("few", [0, MAX_UNBOUNDED_TEXTS], ids=["bound", "as they are"])
@pytest.mark.parametrize(
    ("text", "asked", "score"),
    [
        ("go see mug safe", "go see x y", 0.5),  # 2 * 2 / 8, two words unknown
        ("go", "go see mug", 0.5),  # 2 * 1 / 4, as much as their lengths allow
        ("go see mug", "mug see go", 1 / 3),  # 2 * 1 / 6, whatever their words allow
        ("go go go", "go", 0.5),
        ("go see", "go see", 1.0),
    ],
)
def test_a_text_that_is_just_as_similar_as_asked_for_is_found(few, text, asked, score, monkeypatch):
    monkeypatch.setattr("coevo.memory.similarity.MAX_UNBOUNDED_TEXTS", few)
    made = index([text, "safe safe safe safe safe safe safe"])
    numbers, scores = made.above(asked, score)
    assert (numbers.tolist(), scores.tolist()) == ([0], [pytest.approx(score)])
    assert made.nearest(asked, score) == (0, pytest.approx(score))
    assert made.above(asked, score + 0.01)[0].tolist() == made.above(asked, score, since=1)[0].tolist() == []


@settings(deadline=None)
@given(TEXTS.filter(lambda texts: len(texts) > 1))
def test_symmetric_and_one_for_equals(texts):
    a, b = texts[:2]
    assert similarity(a, b) == similarity(b, a)
    assert similarity(a, a) == 1.0


def test_grids_that_differ_by_one_move_are_alike():
    rows = [list("# . . . . . . . . . . #") for _ in range(14)]
    rows[6][4] = "@"
    before = "\n".join("".join(row) for row in rows)
    rows[6][4], rows[6][6] = ".", "@"
    after = "\n".join("".join(row) for row in rows)
    assert similarity(before, after) == similarity(after, before) > 0.98


def test_many_texts_and_more_words_than_buckets():
    texts = [" ".join(f"w{n}x{i}" for i in range(9)) + " end" for n in range(600)]
    made = index(texts)
    assert len(made) == 600
    assert all(made.nearest(text, 0.85) == (n, 1.0) for n, text in enumerate(texts))
    assert made.nearest("w1x1 w2x2", 0.85) == (-1, 0.0)


def test_nothing_is_like_nothing_alone():
    assert index(["", "mug"]).nearest("", 0.5) == (0, 1.0)
    assert index([]).nearest("", 0.5) == (-1, 0.0)


def test_more_words_than_characters_below_the_surrogates():
    """55,295 words have a character of their own before U+D800; the next one has the first after U+DFFF."""
    made = index([" ".join(f"w{n}" for n in range(0xD800 + 9)), "w55295", "w53247"])
    assert made.nearest("w55295", 0.9) == (1, 1.0)
    assert made.nearest("w53247", 0.9) == (2, 1.0)
