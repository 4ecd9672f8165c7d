"""Answers without a usable action: their turns, and the limit that ends an episode."""

import pytest
from support.chat import chat
from support.hostile import Scripted

from coevo.configs.context_config import ContextConfig
from coevo.envs.homerules.homerules import HomeRules
from coevo.models.policy.context import Context
from coevo.records.draws import extend, key
from coevo.tasks.play.play import Attempt, RolloutWorker

HOME = HomeRules(level=2)


def scripted(*texts, limit=None):
    context = Context(ContextConfig(style="chat", invalid_limit=limit), chat())
    return RolloutWorker(HOME, context, Scripted(*texts), 20)


def play(worker):
    (task,) = HOME.sample(1, key(5))
    (episode,) = worker.play([Attempt(task, 0, (), "rollout-0", 1, extend(key(3), task.id, 0))])
    return episode


def test_so_many_unusable_answers_in_a_row_end_an_episode_as_truncated():
    texts = ("hm", "Action: go safe", "hm", "well")
    endless, limited = play(scripted(*texts)), play(scripted(*texts, limit=2))
    assert len(endless.turns) > len(limited.turns) == 4
    assert limited.truncated and not limited.success
    assert [turn.usable for turn in limited.turns] == [False, True, False, False]
    assert [turn.fault for turn in limited.turns] == ["no action", "", "no action", "no action"]
    assert [turn.valid for turn in limited.turns] == [False, True, False, False]


def test_an_action_that_the_environment_refuses_is_usable():
    refused = play(scripted("Action: fly away", limit=1))
    assert len(refused.turns) > 1
    assert not any(turn.valid for turn in refused.turns)


@pytest.mark.parametrize("text", ["hm", ""])
def test_a_limit_of_one_ends_an_episode_at_once(text):
    assert len(play(scripted(text, limit=1)).turns) == 1
