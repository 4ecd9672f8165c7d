from coevo.models.engines.transformers import prefill_rows
from coevo.models.engines.transformers.embedded_engine import packs
from coevo.models.engines.transformers.prefill_rows import PrefixTree


def test_a_pack_by_hand():
    tree = PrefixTree()
    assert [pack.tokens.tolist() for pack in packs(tree, [(1, 2, 3)])] == [[[1, 2, 3]]]
    # The first continues behind the 1, the second behind what the first adds, the third behind nothing.
    (pack,) = packs(tree, [(1, 7, 8, 9), (1, 7, 8, 4), (5, 6)])
    assert [path.tolist() for path in pack.paths] == [[0, 3, 4, 5], [0, 3, 4, 6], [7, 8]]
    # Inside prompts: 7, 8 and 5, which are the nodes 3, 4 and 7; then the last tokens.
    assert pack.tokens.tolist() == [[7, 8, 5, 9, 4, 6]]
    assert pack.positions.tolist() == [[1, 2, 0, 3, 3, 1]]
    assert pack.held.tolist() == [[0]]
    assert [part.tolist() for part in pack.added] == [[0] * 6, [1, 2, 4, 5, 3, 6]]
    assert (pack.ends, pack.last.tolist()) == (3, [0, 1, 2])
    assert pack.mask[0, 0].int().tolist() == [
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 0],
        [1, 1, 1, 0, 1, 0, 0],
        [1, 1, 1, 0, 0, 1, 0],
        [0, 0, 0, 1, 0, 0, 1],
    ]


def test_rows_are_padded_and_one_computes_again_what_another_adds(monkeypatch):
    monkeypatch.setattr(prefill_rows, "ROW", 3)
    tree = PrefixTree()
    list(packs(tree, [(9, 9)]))
    # Behind nothing: 1, 2 and the last 3; then the 2 once more before the 4, and a prompt that continues behind the 9.
    (pack,) = packs(tree, [(1, 2, 3), (1, 4), (9, 5)])
    assert [path.tolist() for path in pack.paths] == [[2, 3, 4], [2, 5], [0, 6]]
    assert pack.tokens.tolist() == [[1, 2, 3, 0], [1, 0, 4, 5]]
    assert pack.positions.tolist() == [[0, 1, 2, 0], [0, 0, 1, 1]]
    assert pack.held.tolist() == [[0], [0]]
    # Of the second row the 4 and the 5 are added, not the 1.
    assert [part.tolist() for part in pack.added] == [[0, 0, 0, 1, 1], [1, 2, 3, 3, 4]]
    assert (pack.ends, pack.last.tolist()) == (2, [0, 2, 3])
    assert pack.mask[:, 0].int().tolist() == [
        [[0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]],
        [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 1, 0, 1, 0], [1, 0, 0, 0, 1]],
    ]


def test_a_known_prompt_costs_its_last_token():
    tree = PrefixTree()
    list(packs(tree, [(1, 2, 3)]))
    (pack,) = packs(tree, [(1, 2, 3)])
    assert (pack.tokens.tolist(), pack.held.tolist()) == ([[3]], [[0, 1]])
    assert pack.mask.tolist() == [[[[True, True, True]]]]


def test_a_prompt_of_one_token_is_a_last_one_and_no_prompt_makes_no_pack():
    (pack,) = packs(PrefixTree(), [(7,)])
    assert (pack.tokens.tolist(), pack.positions.tolist(), pack.held.tolist()) == ([[7]], [[0]], [[]])
    assert list(packs(PrefixTree(), [])) == []
