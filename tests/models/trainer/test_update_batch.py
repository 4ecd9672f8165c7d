"""Reading samples, and dealing them out."""

import pytest
import torch

from coevo.models.trainer.update_batch import minibatches, read
from coevo.records.draws import key


def test_reading_pads_to_the_longest(batch):
    assert batch.mask.shape == batch.behaviour.shape == (24, max(map(len, batch.completions)))
    assert batch.mask.sum(1).tolist() == [len(completion) for completion in batch.completions]
    assert batch.tokens == sum(map(len, batch.completions))
    assert not batch.behaviour[~batch.mask].any()
    assert batch.episodes.unique().numel() == 8
    assert batch.length(0) == len(batch.prompts[0]) + len(batch.completions[0])


def test_an_empty_file_is_an_empty_batch(empty_path):
    batch = read(empty_path)
    assert (len(batch), batch.tokens) == (0, 0)
    assert minibatches(batch, 2, key(0)) == []
    assert {name: getattr(batch, name).dtype for name in ("behaviour", "mask", "advantages", "values", "returns")} == {
        "behaviour": torch.float32, "mask": torch.bool, "advantages": torch.float32, "values": torch.float32,
        "returns": torch.float32,
    }  # fmt: skip


@pytest.mark.parametrize(("count", "parts"), [(1, 1), (2, 2), (3, 3), (9, 4)])
def test_minibatches_hold_whole_groups_and_every_row_once(batch, count, parts):
    dealt = minibatches(batch, count, key(0))
    assert len(dealt) == parts
    assert sorted(row for rows in dealt for row in rows) == list(range(24))
    groups = [set(batch.groups[rows].tolist()) for rows in dealt]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 4


def test_the_key_decides_the_order(batch):
    assert minibatches(batch, 2, key(0)) == minibatches(batch, 2, key(0))
    assert len({str(minibatches(batch, 2, key(number))) for number in range(8)}) > 1
