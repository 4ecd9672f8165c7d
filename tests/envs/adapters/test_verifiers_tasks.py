"""Tasksets of verifiers, in an interpreter that has it: ``VERIFIERS_PYTHON`` names one, since packages conflict."""

import os
from contextlib import closing

import pytest
from support.adapted import RANDOM_ACTIONS, call, failures, one

from coevo.configs.adapter_config import VerifiersConfig
from coevo.envs.registry import make
from coevo.records.answer_form import WholeForm
from coevo.records.draws import key
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import ConfigError

PYTHON = os.environ.get("VERIFIERS_PYTHON", "")
needs_verifiers = pytest.mark.skipif(not PYTHON, reason="VERIFIERS_PYTHON names no interpreter with verifiers")


def opened(name, python=PYTHON, **settings):
    settings = {"reward_range": (0.0, 1.5), "success": 1.0, **settings}
    return closing(make(VerifiersConfig(taskset=f"support.sums_taskset:{name}", python=python or None, **settings)))


def test_an_interpreter_without_it_is_one_line():
    with opened("Sums", python="") as env, pytest.raises(ConfigError) as caught:
        env.sample(1, key("a"))
    assert "verifiers is not installed in env.python" in str(caught.value)
    assert "\n" not in str(caught.value)


@needs_verifiers
def test_tools_are_called_and_the_rewards_of_the_taskset_count():
    with opened("Sums", options={"count": 20}) as env:
        (task,) = env.sample(1, key("a"))
        state, _ = env.start(task)
        n = int(task.instruction.split()[-1]) - 1
        assert task.instruction == f"Be brief.\n\n{n} + {n + 1}"
        assert [tool["name"] for tool in env.guide(task).tools] == ["calc_add", "answer"]
        added = one(env, state, call("calc_add", a=n, b=n + 1))
        assert (added.observation, added.done) == (str(2 * n + 1), False)
        right = one(env, added.state, call("answer", answer=added.observation))
        assert (right.reward, right.scores) == (1.5, (("right", 1.0), ("used", 0.5)))
        by_heart = one(env, state, call("answer", answer=added.observation))
        assert (by_heart.reward, by_heart.success) == (1.0, True)
        assert len(env.sample(99, key("a"))) + len(env.panel("held-out", 1).tasks) <= 20
        actions = [call("calc_add", a=1, b=2), call("answer", answer="3")]
        assert [str(each) for each in check_environment(env, tasks=2, actions=actions) if not each.passed] == []


@needs_verifiers
def test_without_tools_the_action_is_the_answer():
    with opened("PlainSums", options={"count": 20}) as env:
        (task,) = env.sample(1, key("a"))
        state, _ = env.start(task)
        n = int(task.instruction.split()[-1]) - 1
        assert env.guide(task).answer == WholeForm()
        assert [one(env, state, text).reward for text in (str(2 * n + 1), "0", "")] == [1.0, 0.0, 0.0]


@needs_verifiers
@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("BoxedSums", {}, "BoxedSum needs a container"),
        ("Missing", {}, "has no Missing"),
        ("Sums", {"options": {"colour": 1}}, "env.options: Sums refuses"),
        ("Sums", {"options": {"count": 0}}, "it has no task"),
    ],
)
def test_a_taskset_that_cannot_be_played_is_one_line(name, settings, says):
    with opened(name, **settings) as env, pytest.raises(ConfigError) as caught:
        env.sample(1, key("a"))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@needs_verifiers
@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", RANDOM_ACTIONS)
def test_random_actions_never_raise_out_of_a_step(count):
    for name in ("Sums", "PlainSums"):
        with opened(name, steps=100) as env:
            assert failures(env, count, calls=("calc_add", "answer"), side_by_side=20) == []
