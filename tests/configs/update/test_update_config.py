"""The policy update: what it needs from the trainer, and what it teaches the policy as writer."""

import pytest

from coevo.configs.update.advantage_config import GaeConfig
from coevo.configs.update.loss import LossConfig
from coevo.configs.update.update_config import CriticConfig, UpdateConfig, WriterUpdateConfig


@pytest.mark.parametrize(
    ("update", "needs"),
    [
        (UpdateConfig(), False),
        (UpdateConfig(loss=LossConfig(kl_in="reward")), True),
        (UpdateConfig(advantage=GaeConfig(type="gae"), critic=CriticConfig()), True),
    ],
)
def test_values_and_a_penalty_need_the_trainers_scores(update, needs):
    assert update.needs_scores() is needs


@pytest.mark.parametrize("reward", [None, "prediction", "replay"])
def test_the_writer_is_trained_by_its_own_reward_alone(reward):
    update = UpdateConfig(writer=None if reward is None else WriterUpdateConfig(reward=reward))
    assert {by for by in ("prediction", "replay") if update.trains_writer(by)} == {reward} - {None}


@pytest.mark.parametrize("balance", [True, False])
def test_predictions_are_balanced_or_not(balance):
    assert WriterUpdateConfig(balance=balance).balance is balance


def test_a_penalty_may_be_as_small_as_one_likes():
    assert UpdateConfig(loss=LossConfig(kl_in="reward", kl_coefficient=1e-9)).loss.kl_coefficient == 1e-9
