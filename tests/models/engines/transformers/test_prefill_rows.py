from itertools import count

import pytest

from coevo.models.engines.transformers import prefill_rows
from coevo.models.engines.transformers.prefill_rows import PrefixTree, evenly, forwards


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, value in {"ROW": 4, "FORWARD": 12, "TWICE": 2}.items():
        monkeypatch.setattr(prefill_rows, name, value)


def different(*lengths):
    """Prompts that have no token in common."""
    numbers = count()
    return [tuple(next(numbers) for _ in range(length)) for length in lengths]


def arranged(tree, prompts):
    return [[row.prompts for row in together] for together in forwards(tree, prompts)]


def test_rows_are_even():
    # 12 new tokens are three rows of 4.
    (rows,) = forwards(PrefixTree(), different(2, 2, 2, 2, 2, 2))
    assert [(row.begin, row.added) for row in rows] == [(0, 4), (4, 4), (8, 4)]


def test_a_row_is_as_narrow_as_the_number_of_rows_allows():
    assert evenly([2, 2, 2, 2, 2], 2) == [0, 0, 0, 1, 1]
    # In three rows the widest is 7 at the least: 5 + 2, 3 + 4, 6.
    assert evenly([5, 2, 3, 4, 6], 3) == [0, 0, 1, 1, 2]
    assert evenly([1, 9, 1], 1) == [0, 0, 0]
    assert evenly([4], 1) == [0]
    assert evenly([], 1) == []


def test_a_long_prompt_is_computed_apart_from_short_ones():
    short, long, end = different(1, 9, 2)
    (first, *others) = arranged(PrefixTree(), [short, long, end])
    assert first == [[short]]
    # Two rows padded to 9 would be 18 tokens, more than a forward takes.
    assert others == [[[long]], [[end]]]


def test_a_full_forward_is_followed_by_another():
    prompts = different(*[4] * 5)
    assert arranged(PrefixTree(), prompts) == [[[p] for p in prompts[:3]], [[p] for p in prompts[3:]]]


def test_who_needs_much_of_what_others_add_waits_for_it():
    head = (1, 2, 3)
    prompts = [(*head, 4), (*head, 5, 6, 7, 8), (*head, 9, 10, 11, 12)]
    rows = list(forwards(PrefixTree(), prompts))
    assert [[row.prompts for row in together] for together in rows] == [[[prompts[0]]], [[prompts[1]], [prompts[2]]]]
    # Behind the head each adds its own four.
    assert [row.added for row in rows[1]] == [4, 4]


def test_who_needs_little_computes_it_again():
    prompts = [(1, 2, 3, 4), (1, 2, 5, 6, 7, 8)]
    (rows,) = forwards(PrefixTree(), prompts)
    assert [row.paths[0].tolist() for row in rows] == [[0, 1, 2, 3], [0, 1, 4, 5, 6, 7]]


def test_every_prompt_is_in_one_row_in_its_place():
    tree, prompts = PrefixTree(), different(1, 5, 3, 3, 7, 2, 2, 8, 1, 1)
    rows = [row for together in forwards(tree, prompts) for row in together]
    assert [prompt for row in rows for prompt in row.prompts] == prompts
    assert [row.begin for row in rows] == [sum(row.added for row in rows[:n]) for n in range(len(rows))]
    assert tree.size == sum(map(len, prompts))
