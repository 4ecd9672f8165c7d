"""Environments of other libraries from Python: settings of a run, and refusals."""

from pathlib import Path

import pytest
from support import factories, gym_games
from support.adapted import COUNTS

import coevo
from coevo.envs.rows.task_table import load_table
from coevo.flows.configure import configure
from coevo.flows.console.options import as_typed
from coevo.utilities.errors import CoevoError


def test_a_call_becomes_settings_that_other_processes_can_read():
    env = coevo.from_gymnasium("Taxi-v4", words=gym_games.corners, actions=["s", "n", "e", "w", "p", "d"], tasks=50)
    settings = env.settings()
    assert (settings["env"]["words"], settings["env"]["tasks"]) == ("support.gym_games:corners", 50)
    assert settings["evaluation.panels"] == []
    assert [Path(each).name for each in env.python_path] == ["tests"]


def test_a_recipe_takes_the_environment_and_its_panel():
    for game in ("Taxi-v4", "FrozenLake-v1"):  # nothing of the recipe's own lake is left
        env = coevo.from_gymnasium(game, reward_range=[-2000.0, 20.0])
        config = configure("gymnasium-grpo", as_typed(env.settings()))
        assert (config.env, config.evaluation.panels) == (env.config, ("held-out",))
    config = configure("gymnasium-grpo", ["env.id=Taxi-v4", "env.simulator.workers=3"])
    assert (config.env.options, config.env.actions, config.env.simulator.workers) == ({}, (), 3)
    assert configure("gymnasium-grpo", ["env.tasks=3"]).env.options


def test_rows_of_a_factory_are_kept_in_the_workspace(tmp_path):
    env = coevo.from_factory(factories.Counter, rows=COUNTS, reward=factories.even, workspace=tmp_path, scope="target")
    assert (env.config.factory, env.config.reward) == ("support.factories:Counter", ("support.factories:even",))
    assert load_table(env.config.rows).rows == tuple(COUNTS)
    assert coevo.from_factory("support.factories:Counter").config.rows is None


def test_a_rollout_leaves_an_episode_the_turns_until_its_reward(tmp_path):
    env = coevo.from_factory(factories.Counter, rows=COUNTS, workspace=tmp_path)
    settings = as_typed({**env.settings(), "evaluation.tasks": 4})
    with pytest.raises(CoevoError, match=r"rollout.max_turns=8 ends episodes before env.steps=16.* set env.steps=8"):
        configure("rows-grpo-qwen3-0.6b", settings)
    assert configure("rows-grpo-qwen3-0.6b", [*settings, "env.steps=8"]).env.steps == 8


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: coevo.from_gymnasium("Taxi-v4", speed=2), "from_gymnasium: speed"),
        (lambda: coevo.from_gymnasium("Taxi-v4", words=lambda seen: ""), "<lambda> is defined in another function"),
        (lambda: coevo.from_gymnasium("Taxi-v4", actions=["go", "go"]), "is no name of an action"),
        (lambda: coevo.from_gymnasium("Taxi-v4", reward_range=[1.0, 0.0]), "is no range"),
        (lambda: coevo.from_factory(factories.Counter(), rows=COUNTS), "is no function"),
        (lambda: coevo.from_factory("no reference"), "from_factory: factory"),
    ],
)
def test_what_cannot_be_is_one_line(call, says):
    with pytest.raises(CoevoError) as caught:
        call()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
