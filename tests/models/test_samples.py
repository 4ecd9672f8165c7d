"""Samples: a row a turn, without the groups that teach nothing."""

import numpy as np
import pyarrow.parquet as pq

from models.samples import SAMPLES, write_samples
from records.episode import Completion, Episode, Turn
from records.task import Task


def episode(name, replica, turns):
    task = Task("e", "k", name, "s", "train", {})
    played = tuple(
        Turn("see", (1, 2, index), Completion((3, 4 + index), (-0.5, -0.25), "go", True), "go", "", 0.0, True)
        for index in range(turns)
    )
    return Episode(f"1/rollout/{task.id}/{replica}", task, 1, replica, played, True, False)


def test_rows_are_turns_with_their_episodes_advantage(tmp_path):
    episodes = [episode("a", 0, 2), episode("flat", 0, 3), episode("a", 1, 1), episode("flat", 1, 1)]
    counts = write_samples(tmp_path / "batch", episodes, np.array([0.5, 0.0, -0.5, 0.0]))
    table = pq.read_table(tmp_path / "batch")
    assert table.schema.equals(SAMPLES)
    assert (counts.rows, counts.groups, counts.skipped) == (3, 2, 1)
    assert table["episode"].to_pylist() == [episodes[0].id, episodes[0].id, episodes[2].id]
    assert set(table["group"].to_pylist()) == {episodes[0].task.id}
    assert table["turn"].to_pylist() == [0, 1, 0]
    assert table["prompt_ids"].to_pylist() == [[1, 2, 0], [1, 2, 1], [1, 2, 0]]
    assert table["token_ids"].to_pylist() == [[3, 4], [3, 5], [3, 4]]
    assert table["logprobs"].to_pylist() == [[-0.5, -0.25]] * 3
    assert table["advantage"].to_pylist() == [0.5, 0.5, -0.5]


def test_an_average_episode_of_a_group_that_differs_stays(tmp_path):
    episodes = [episode("a", replica, 1) for replica in range(3)]
    assert write_samples(tmp_path / "batch", episodes, np.array([1.0, 0.0, -1.0])).rows == 3


def test_nothing_to_learn_is_an_empty_table(tmp_path):
    counts = write_samples(tmp_path / "batch", [episode("a", 0, 2)], np.zeros(1))
    assert (counts.rows, counts.groups, counts.skipped) == (0, 1, 1)
    assert pq.read_table(tmp_path / "batch").num_rows == 0
