import torch

from models.layout import lay_out
from models.prefix import Prefix


def prefix(*ids):
    return Prefix(ids, [(torch.zeros(1, len(ids), 2), torch.zeros(1, len(ids), 2))])


def test_a_ragged_batch_by_hand():
    # Row 0 leaves its prefix after two tokens, row 1 follows its prefix to the end.
    layout = lay_out(
        [
            prefix(1, 2, 3),
            prefix(
                1,
            ),
        ],
        [(1, 2, 9), (1, 5, 6, 7)],
    )
    assert layout.shared.tolist() == [2, 1]
    assert layout.lengths.tolist() == [1, 3]
    assert layout.tokens.tolist() == [[0, 0, 9], [5, 6, 7]]
    assert layout.positions().tolist() == [[0, 1, 2], [1, 2, 3]]
    # Columns: two of the prefix, three of the rest. Padding sees itself, so that no row of a softmax is empty.
    first = [[1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [1, 1, 0, 0, 1]]
    second = [[1, 0, 1, 0, 0], [1, 0, 1, 1, 0], [1, 0, 1, 1, 1]]
    assert layout.mask().int().tolist() == [[first], [second]]
    assert layout.cache(4).get_seq_length() == 2


def test_a_prompt_equal_to_its_prefix_keeps_its_last_token():
    layout = lay_out([prefix(1, 2, 3)], [(1, 2, 3)])
    assert layout.shared.tolist() == [2]
    assert layout.tokens.tolist() == [[3]]


def test_generated_tokens_follow():
    layout = lay_out(
        [
            prefix(1, 2, 3),
            prefix(
                1,
            ),
        ],
        [(1, 2, 9), (1, 5, 6, 7)],
    )
    positions, mask = layout.next(torch.tensor([0, 1]), 1)
    assert positions.tolist() == [[4], [5]]
    assert mask[:, 0, 0].int().tolist() == [[1, 1, 0, 0, 1, 1, 1], [1, 0, 1, 1, 1, 1, 1]]
    positions, mask = layout.next(torch.tensor([1]), 0)
    assert positions.tolist() == [[4]]
    assert mask[:, 0, 0].int().tolist() == [[1, 0, 1, 1, 1, 1]]
