"""GiGPO: steps that saw the same state, compared by what followed."""

import numpy as np
import pytest
from support.trajectories import trajectory

from coevo.configs.update.advantage_config import GigpoConfig
from coevo.models.advantages import estimate
from coevo.models.advantages.gigpo import step_returns
from coevo.utilities.errors import CoevoError


def gigpo(**settings):
    return GigpoConfig(**{"type": "gigpo"} | settings)


def test_step_returns_are_discounted_to_the_step():
    np.testing.assert_allclose(step_returns(np.array([0.0, 1.0, 0.0, 2.0]), 0.5), [0.75, 1.5, 1.0, 2.0])


def test_worked_by_hand():
    # Step returns: hall .5, room 1 | hall 0. Means: hall .25; the room was seen once. Episodes: +.5, -.5.
    rows = [trajectory(1.0, lengths=(2, 1), anchors=("hall", "room")), trajectory(0.0, lengths=(3,), anchors=("hall",))]
    made = estimate(rows, gigpo(gamma=0.5, weight=2.0))
    assert made.episodes.tolist() == [0.5, -0.5]
    np.testing.assert_allclose(made.tokens[0], [0.5 + 2 * 0.25, 0.5 + 2 * 0.25, 0.5])
    np.testing.assert_allclose(made.tokens[1], [-0.5 - 2 * 0.25] * 3)
    assert made.metrics["policy/advantage/step_std"] == pytest.approx(np.std([0.25, 0.0, -0.25]))
    assert made.metrics["policy/advantage/step_alone_share"] == pytest.approx(1 / 3)


def test_with_deviations_both_terms_are_divided():
    rows = [trajectory(1.0, anchors=("hall",)), trajectory(0.0, anchors=("hall",))]
    made = estimate(rows, gigpo(mode="mean_std_norm"))
    np.testing.assert_allclose(made.episodes, [0.7071058, -0.7071058], atol=1e-6)
    np.testing.assert_allclose(made.tokens[0], [2 * 0.7071058] * 2, atol=1e-6)


def test_the_same_state_of_another_task_is_another_state():
    rows = [trajectory(1.0, "a", anchors=("hall",)), trajectory(0.0, "b", anchors=("hall",))]
    made = estimate(rows, gigpo())
    assert all(not values.any() for values in made.tokens)
    assert not made.used.any()


def test_steps_may_teach_where_episodes_do_not():
    # Both succeed, one from the hall in two steps: the step term tells them apart, and the group is used.
    rows = [trajectory(1.0, lengths=(1, 1), anchors=("hall", "room")), trajectory(1.0, lengths=(1,), anchors=("hall",))]
    made = estimate(rows, gigpo(gamma=0.9))
    assert made.episodes.tolist() == [0.0, 0.0]
    np.testing.assert_allclose(np.concatenate(made.tokens), [-0.05, 0.0, 0.05], atol=1e-12)
    assert made.used.all()


def test_a_turn_without_cluster_is_comparable_with_nothing_and_some_must_have_one():
    rows = [trajectory(1.0, anchors=(None,)), trajectory(0.0, anchors=(3,)), trajectory(0.0, anchors=(3,))]
    np.testing.assert_allclose(estimate(rows, gigpo(weight=9.0)).tokens[0], [2 / 3] * 2)
    with pytest.raises(CoevoError, match=r"set update\.advantage\.anchor=observation"):
        estimate(rows[:1], gigpo(anchor="cluster"))
    assert estimate(rows[:1], gigpo(anchor="observation")).tokens[0].tolist() == [0.0, 0.0]
    assert estimate([], gigpo(anchor="cluster")).tokens == []
