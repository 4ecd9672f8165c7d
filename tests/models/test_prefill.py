from itertools import count

from models import prefill
from models.prefill import packs
from models.prefix_tree import PrefixTree


def test_a_pack_by_hand():
    tree = PrefixTree()
    assert [pack.tokens.tolist() for pack in packs(tree, [(1, 2, 3)])] == [[[1, 2, 3]]]
    # The first goes on behind the 1, the second behind what the first adds, the third behind nothing.
    (pack,) = packs(tree, [(1, 7, 8, 9), (1, 7, 8, 4), (5, 6)])
    assert [path.tolist() for path in pack.paths] == [[0, 3, 4, 5], [0, 3, 4, 6], [7, 8]]
    assert pack.tokens.tolist() == [[7, 8, 9, 4, 5, 6]]
    assert pack.positions.tolist() == [[1, 2, 3, 3, 0, 1]]
    assert pack.held.tolist() == [[0]]
    assert pack.ends.tolist() == [2, 3, 5]
    assert pack.mask[0, 0].int().tolist() == [
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 1, 1, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1, 1],
    ]


def test_a_known_prompt_costs_its_last_token():
    tree = PrefixTree()
    list(packs(tree, [(1, 2, 3)]))
    (pack,) = packs(tree, [(1, 2, 3)])
    assert (pack.tokens.tolist(), pack.held.tolist()) == ([[3]], [[0, 1]])
    assert pack.mask.tolist() == [[[[True, True, True]]]]


def test_full_packs_hold_whole_prompts_and_the_next_finds_theirs(monkeypatch):
    monkeypatch.setattr(prefill, "SIZE", 4)
    first, second = packs(PrefixTree(), [(1, 2), (1, 3), (4, 5, 6), (1, 4)])
    assert first.tokens.tolist() == [[1, 2, 3, 4, 5, 6]]
    assert second.tokens.tolist() == [[4]]
    assert second.held.tolist() == [[0]]


def test_one_long_prompt_is_one_pack(monkeypatch):
    monkeypatch.setattr(prefill, "SIZE", 4)
    numbers = count()
    prompts = [tuple(next(numbers) for _ in range(9)) for _ in range(2)]
    assert [pack.tokens.shape[1] for pack in packs(PrefixTree(), prompts)] == [9, 9]


def test_no_prompt_makes_no_pack():
    assert list(packs(PrefixTree(), [])) == []
