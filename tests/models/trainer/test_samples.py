"""Samples: a row a turn, without the groups that teach nothing."""

import numpy as np
import pyarrow.parquet as pq

from coevo.models.advantages.trajectory import Advantages
from coevo.models.trainer.samples import SAMPLES, Scores, read_scores, write_samples, write_scores, write_turns
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.task import Task


def episode(name, replica, turns):
    task = Task("e", "k", name, "s", "train", {})
    played = tuple(
        Turn("see", (1, 2, index), Completion((3, 4 + index), (-0.5, -0.25), "go", True), "go", "", 0.0, True)
        for index in range(turns)
    )
    return Episode(f"1/rollout/{task.id}/{replica}", task, 1, replica, played, True, False)


def of(episodes, values):
    """One advantage an episode; groups without any are not used."""
    lengths = [sum(len(turn.completion.token_ids) for turn in episode.turns) for episode in episodes]
    taught = {episode.task.id for episode, value in zip(episodes, values, strict=True) if value}
    return Advantages(
        episodes=np.array(values),
        tokens=[np.full(length, value) for length, value in zip(lengths, values, strict=True)],
        used=np.array([episode.task.id in taught for episode in episodes]),
        centred=True,
    )


def test_rows_are_turns_with_their_episodes_advantage(tmp_path):
    episodes = [episode("a", 0, 2), episode("flat", 0, 3), episode("a", 1, 1), episode("flat", 1, 1)]
    counts = write_samples(tmp_path / "batch", episodes, of(episodes, [0.5, 0.0, -0.5, 0.0]))
    table = pq.read_table(tmp_path / "batch")
    assert table.schema.equals(SAMPLES)
    assert (counts.rows, counts.groups, counts.skipped) == (3, 2, 1)
    assert table["episode"].to_pylist() == [episodes[0].id, episodes[0].id, episodes[2].id]
    assert set(table["group"].to_pylist()) == {episodes[0].task.id}
    assert table["turn"].to_pylist() == [0, 1, 0]
    assert table["prompt_ids"].to_pylist() == [[1, 2, 0], [1, 2, 1], [1, 2, 0]]
    assert table["token_ids"].to_pylist() == [[3, 4], [3, 5], [3, 4]]
    assert table["logprobs"].to_pylist() == [[-0.5, -0.25]] * 3
    assert table["advantage"].to_pylist() == [[0.5] * 2, [0.5] * 2, [-0.5] * 2]
    assert table["value"].to_pylist() == table["return"].to_pylist() == [[]] * 3


def test_an_average_episode_of_a_group_that_differs_stays_and_nothing_to_learn_is_an_empty_table(tmp_path):
    episodes = [episode("a", replica, 1) for replica in range(3)]
    assert write_samples(tmp_path / "batch", episodes, of(episodes, [1.0, 0.0, -1.0])).rows == 3
    counts = write_samples(tmp_path / "batch", [episode("a", 0, 2)], of([episode("a", 0, 2)], [0.0]))
    assert (counts.rows, counts.groups, counts.skipped) == (0, 1, 1)
    assert pq.read_table(tmp_path / "batch").num_rows == 0


def test_advantages_values_and_returns_go_to_their_tokens(tmp_path):
    episodes = [episode("a", 0, 2)]
    numbers = np.arange(4.0)
    made = Advantages(np.zeros(1), [numbers], np.ones(1, dtype=bool), centred=False, returns=[numbers + 20])
    write_samples(tmp_path / "batch", episodes, made, [numbers + 10])
    table = pq.read_table(tmp_path / "batch")
    assert table["advantage"].to_pylist() == [[0, 1], [2, 3]]
    assert table["value"].to_pylist() == [[10, 11], [12, 13]]
    assert table["return"].to_pylist() == [[20, 21], [22, 23]]


def test_turns_to_be_scored_come_back_in_order(tmp_path):
    write_turns(tmp_path / "turns", [episode("a", 0, 2), episode("flat", 0, 1)])
    assert pq.read_table(tmp_path / "turns")["turn"].to_pylist() == [0, 1, 0]
    values = [np.array([0.25, 0.5]), np.zeros(0), np.array([1.0])]
    write_scores(tmp_path / "scores", Scores([], values), 3)
    read = read_scores(tmp_path / "scores")
    assert [row.tolist() for row in read.values] == [[0.25, 0.5], [], [1.0]]
    assert [row.tolist() for row in read.reference] == [[], [], []]
