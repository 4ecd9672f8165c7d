"""Held-out tasks are known by their ids and by their data, as far as data tell them apart."""

from contextlib import closing
from types import SimpleNamespace

import pytest
from support.worker import environment

from coevo.configs.load.load import load_recipe
from coevo.configs.load.shipped_files import names
from coevo.envs.registry import make
from coevo.envs.shipped import SHIPPED
from coevo.records.draws import key
from coevo.records.task import Panel, Task
from coevo.tasks.iteration.held_out import episode_limits, held_out
from coevo.utilities.errors import CoevoError

CONFIG = load_recipe("homerules-grpo")


def paneled(*data):
    """An environment whose panel has these data, in tasks of different instructions."""
    tasks = tuple(Task("house", "", f"task {number}", "", "p", each) for number, each in enumerate(data))
    return SimpleNamespace(panels=("p",), reward_range=(0.0, 1.0), panel=lambda name, count: Panel(name, "1", tasks))


def test_the_tasks_of_every_panel_are_held_out_by_their_data_and_those_of_training_are_not():
    env = environment()
    limits = episode_limits(CONFIG, env, 256)
    tasks = [task for name in env.panels for task in env.panel(name, CONFIG.evaluation.tasks).tasks]
    assert {task.id for task in tasks} == limits.held_out
    assert {task.data_digest for task in tasks} == limits.held_out_data
    assert not limits.held_out_data & {task.data_digest for task in env.sample(64, key(1, "sample"))}


@pytest.mark.parametrize(
    ("data", "known"),
    [([{"n": 1}, {"n": 2}], 2), ([{"n": 1}, {"n": 1}, {"n": 2}], 1), ([{}, {"n": 2}], 1), ([{}], 0)],
)
def test_data_that_tell_no_task_apart_hold_nothing_out(data, known):
    limits = episode_limits(CONFIG, paneled(*data), 256)
    assert (len(limits.held_out), len(limits.held_out_data)) == (len(data), known)


def sized(most, played):
    """Configuration that plays some panels, and an environment whose panels have so many tasks."""

    def panel(name, count):
        if count > most[name]:
            raise CoevoError("request fewer")
        return Panel(name, "1", tuple(Task("house", "", f"{name} {number}", "", name, {}) for number in range(count)))

    evaluation = SimpleNamespace(tasks=48, panels=played, final_panels=())
    return SimpleNamespace(evaluation=evaluation), SimpleNamespace(panels=tuple(most), panel=panel)


def test_a_panel_that_is_not_played_may_have_fewer_tasks():
    assert len(held_out(*sized({"a": 48, "b": 43, "c": 1}, ["a"])).held_out) == 48 + 43 + 1
    for most, played in (({"a": 47}, ["a"]), ({"a": 48, "b": 0}, ["a"])):
        with pytest.raises(CoevoError, match="request fewer"):
            held_out(*sized(most, played))


@pytest.mark.parametrize(
    "recipe", [pytest.param(each, marks=pytest.mark.full) if "sokoban" in each else each for each in names("recipes")]
)
def test_a_recipe_as_it_ships_has_the_tasks_that_it_evaluates(recipe):
    config = load_recipe(recipe)
    lacking = SHIPPED[config.env.type].remedy if config.env.type in SHIPPED else ""
    if lacking:
        pytest.skip(lacking)
    with closing(make(config.env)) as env:
        held_out(config, env)
