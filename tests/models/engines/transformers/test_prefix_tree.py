import numpy as np

from coevo.models.engines.transformers.prefill_rows import PrefixTree


def test_prompts_share_the_nodes_of_what_they_share():
    tree = PrefixTree()
    assert tree.add((5, 6, 7)).tolist() == [0, 1, 2]
    assert tree.add((5, 6, 8, 9)).tolist() == [0, 1, 3, 4]
    assert tree.add((6, 6)).tolist() == [5, 6]
    assert tree.size == 7


def test_the_last_token_is_always_new_and_nobodys_beginning():
    tree = PrefixTree()
    assert tree.add((5, 6)).tolist() == [0, 1]
    assert tree.add((5, 6)).tolist() == [0, 2]
    assert tree.add((5, 6, 7)).tolist() == [0, 3, 4]
    assert tree.add((5,)).tolist() == [5]


def test_kept_nodes_are_found_under_their_new_numbers():
    tree = PrefixTree()
    tree.add((1, 2, 3))
    tree.add((4, 5, 6))
    tree.add((4, 7, 8))
    # Of the second and the third prompt: 3 is the 4, 4 the 5, 6 the 7; the last tokens are left behind.
    tree.keep(np.array([3, 4, 6]))
    assert tree.size == 3
    assert tree.add((4, 7, 9)).tolist() == [0, 2, 3]
    assert tree.add((4, 5, 9)).tolist() == [0, 1, 4]
    assert tree.add((1, 2)).tolist() == [5, 6]
