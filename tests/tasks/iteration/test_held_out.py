"""Held-out tasks are known by their ids and by their data, as far as data tell them apart."""

from types import SimpleNamespace

import pytest
from support.worker import environment

from coevo.configs.load.load import load_recipe
from coevo.records.draws import key
from coevo.records.task import Panel, Task
from coevo.tasks.iteration.held_out import episode_limits

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
