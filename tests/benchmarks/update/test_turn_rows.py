"""Rows of many turns: which of them share what."""

import pytest

from benchmarks.update.turn_rows import LAYOUTS, write_turns
from coevo.models.trainer.order import leaves
from coevo.models.trainer.packing import tries
from coevo.models.trainer.update_batch import read


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    directory = tmp_path_factory.mktemp("turns")
    for number, layout in enumerate(LAYOUTS):
        write_turns(directory / f"{number}.parquet", layout, 1000, (4, 6), groups=2, episodes=2)
    return {layout: read(directory / f"{number}.parquet") for number, layout in enumerate(LAYOUTS)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_update_forwards_hardly_more_than_distinct_tokens(batches, layout):
    batch = batches[layout]
    forwarded = sum(leaves(batch.order, run).tokens for run in tries(batch, range(len(batch)), 2000))
    assert forwarded <= 1.1 * leaves(batch.order, range(len(batch))).tokens


def test_a_conversation_shares_most_and_lessons_in_the_system_message_least(batches):
    distinct = {layout: leaves(batch.order, range(len(batch))).tokens for layout, batch in batches.items()}
    assert min(distinct, key=distinct.get) == "conversation"
    assert max(distinct, key=distinct.get) == "lessons in the system message"


def test_a_conversations_episode_is_one_path(batches):
    batch = batches["conversation"]
    rows = (batch.episodes == 0).nonzero().flatten().tolist()
    assert len(leaves(batch.order, rows).rows) == 1
