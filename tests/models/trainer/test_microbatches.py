"""Micro-batches keep to their budget, and keep groups and episodes together where they fit."""

import pytest
import torch
from support.rows import batch_of, ragged

from coevo.models.trainer import packing
from coevo.models.trainer.order import leaves
from coevo.models.trainer.packing import padded, tries


def one_leaf(batch, run):
    return len(leaves(batch.order, run).rows) == 1


@pytest.mark.parametrize("tokens", [1, 20, 50, 10_000])
def test_tries_and_padded_rows_keep_to_the_budget(batch, tokens):
    rows = list(range(3, 20))
    runs = tries(batch, rows, tokens)
    assert sorted(row for run in runs for row in run) == rows
    assert all(one_leaf(batch, run) or leaves(batch.order, run).tokens <= tokens for run in runs)
    order = torch.tensor([int(batch.groups[row]) for run in runs for row in run])
    assert len(torch.unique_consecutive(order)) == len(torch.unique(order))
    assert tries(batch, [], tokens) == padded(batch, [], tokens) == []
    runs = padded(batch, rows, tokens)
    assert sorted(row for run in runs for row in run) == rows
    assert all(len(run) == 1 or len(run) * max(map(batch.length, run)) <= tokens for run in runs)


def test_episodes_stay_together_where_a_group_does_not_fit():
    prompts, completions, _ = ragged(groups=2, episodes=4, turns=3)
    episodes = [row // 3 for row in range(24)]
    whole = batch_of(prompts, completions, [row // 12 for row in range(24)], episodes)
    most = max(leaves(whole.order, range(start, start + 3)).tokens for start in range(0, 24, 3))
    runs = tries(whole, range(24), most)
    assert len(runs) > 2
    assert sum(len({episodes[row] for row in run}) for run in runs) == 8


def test_tokens_that_rows_share_count_once():
    whole = batch_of([(1, 2, 3, 4)] * 4, [(5, 6), (5, 7), (6, 5), (7, 7)])
    assert tries(whole, range(4), 7) == [[0, 1, 2, 3]]
    assert len(tries(whole, range(4), 6)) == 2


def test_pairs_of_attention_are_bounded(batch, monkeypatch):
    rows = range(len(batch))
    monkeypatch.setattr(packing, "PAIRS", 300)
    runs = tries(batch, rows, 10_000)
    assert len(runs) > 1
    assert all(one_leaf(batch, run) or leaves(batch.order, run).pairs <= 300 for run in runs)


def test_the_turns_of_a_conversation_stay_together_however_long_it_is(monkeypatch):
    ends = [range(10 * turn, 10 * turn + 5) for turn in range(1, 13)]
    prompts = [(episode, *range(1, end.start)) for episode in range(3) for end in ends]
    batch = batch_of(prompts, [tuple(end) for end in ends * 3], episodes=[row // 12 for row in range(36)])
    whole = [list(range(12 * episode, 12 * (episode + 1))) for episode in range(3)]
    assert tries(batch, range(len(batch)), 64) == whole
    monkeypatch.setattr(packing, "PAIRS", 300)
    assert tries(batch, range(len(batch)), 10_000) == whole
