"""Advantages and outcomes, and what is reported of them, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from support.batches import episode, turn

from coevo.configs.update.advantage_config import GigpoConfig, GrpoConfig
from coevo.configs.update.reward_config import ExtrinsicConfig
from coevo.models.rewards import reward
from coevo.tasks.play.episode_metrics import outcome_metrics
from coevo.tasks.steps.policy_steps import EpisodeScores, advantage_metrics, trajectories_of


def test_the_spread_of_advantages():
    metrics = advantage_metrics(np.array([1.0, -1.0, 0.0, 0.0]), np.array([False, False, True, True]))
    assert metrics["policy/advantage/mean"] == 0.0
    assert metrics["policy/advantage/std"] == pytest.approx(0.5**0.5)
    assert (metrics["policy/advantage/min"], metrics["policy/advantage/max"]) == (-1.0, 1.0)
    assert metrics["policy/advantage/zero_variance_share"] == 0.5


def test_the_histogram_counts_everything_once_and_what_lies_beyond_in_the_outer_bins():
    metrics = advantage_metrics(np.array([-9.0, -0.1, 0.0, 0.2, 9.0]), np.zeros(5, dtype=bool))
    bins = {name: value for name, value in metrics.items() if name.startswith("policy/advantage_histogram/")}
    assert sum(bins.values()) == 5
    assert bins["policy/advantage_histogram/from_-3.0"] == 1
    assert bins["policy/advantage_histogram/from_-0.5"] == 1
    assert bins["policy/advantage_histogram/from_0.0"] == 2
    assert bins["policy/advantage_histogram/from_2.5"] == 1


def test_outcomes_of_a_batch():
    played = [episode(replica=0, turns=(turn(valid=False),)), episode(replica=1, turns=(turn(), turn(reward=1.0)))]
    assert outcome_metrics(played, "p") == {
        "agent/success/p": 0.5,
        "agent/reward/p": 0.5,
        "agent/turns/p": 1.5,
        "agent/truncated/p": 0.0,
        "agent/invalid/p": pytest.approx(1 / 3),
    }


def test_each_part_of_a_reward_has_a_mean_of_its_own_over_the_turns_that_have_it():
    parts = [(("exact", 1.0), ("short", 0.5)), (("exact", 0.0),), ()]
    played = [episode(replica=index, turns=(replace(turn(), scores=each),)) for index, each in enumerate(parts)]
    metrics = outcome_metrics(played, "p")
    found = {name: value for name, value in metrics.items() if name.startswith("agent/rewards/")}
    assert found == {"agent/rewards/p/exact": 0.5, "agent/rewards/p/short": 0.5}


@pytest.mark.parametrize(
    ("config", "anchors"),
    [
        (GrpoConfig(), ("see", "hall")),
        (GigpoConfig(type="gigpo"), ("see", "hall")),
        (GigpoConfig(type="gigpo", anchor="cluster"), (None, 3)),
    ],
)
def test_what_an_estimator_sees_of_an_episode(config, anchors):
    played = episode(turns=(turn(tokens=2, valid=False), turn(tokens=5, reward=1.0, observation="hall", cluster_id=3)))
    rewards = reward([played], 0.25, ExtrinsicConfig(), {})
    shaped = played.with_shaping(float(rewards.shaping[0]))
    scores = EpisodeScores(values=np.zeros(7), bootstrap=0.5)
    (it,) = trajectories_of([shaped], [shaped.task.id], rewards, [scores], config)
    assert (it.group, it.value, it.lengths, it.anchors) == (played.task.id, 0.75, (2, 5), anchors)
    assert it.rewards.tolist() == [-0.25, 1.0]
    assert it.tokens == len(it.values) == 7
    assert it.bootstrap == 0.5
