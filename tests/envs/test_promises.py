"""Environments that are drawn from keys: what each keeps whatever an agent writes, and wherever it plays."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coevo.envs.base import Step
from coevo.envs.lifelong.lifelong_db import LifelongDb
from coevo.envs.minesweeper import MineSweeper
from coevo.envs.searchqa import SearchQA
from coevo.envs.sokoban import Sokoban
from coevo.envs.webshop import WebShop
from coevo.records.demonstration import Moment
from coevo.records.draws import extend, generator, key
from coevo.tasks.checks.environment_check import check_environment

MADE = {
    "sokoban": Sokoban,
    "minesweeper": MineSweeper,
    "webshop": WebShop,
    "lifelong-db": LifelongDb,
    "queries": lambda: LifelongDb(level=3),
    "searchqa": SearchQA,
    "searchqa level 1": lambda: SearchQA(1, form="tags"),
    "named fields": lambda: MineSweeper(size=5, mines=5, fields=32),
}
each = pytest.mark.parametrize("name", MADE)
STRINGS = 10_000
LONG = 1_000_000
FRAGMENTS = (
    "up", "down", "(1, 1)", "(6,6)", "(2 3)", "search[", "search[red mug]", "click[", "click[buy now]", "answer[",
    "search[mayor]", "<answer>", "</answer>", "]", "[", " ",
    "\n", "\x00", "\x1b[2J", "\r", "\u202e", "\ufeff", "९", "🙂", "e\u0301", "None", "{}", "<action>", "'", '"', "\\",
    "%s", "-1", "1e9", "Operation ", "SELECT ", "* FROM goods", "Answer ",
)  # fmt: skip
"""Pieces of hostile actions; any characters stand between them."""


def hostile(draw):
    """Random actions: pieces and characters of all planes, control characters among them, and a few very long ones."""
    rng = generator(draw)
    for index in range(STRINGS):
        picked = [FRAGMENTS[number] for number in rng.integers(len(FRAGMENTS), size=rng.integers(4))]
        drawn = rng.integers([32, 256, 0xD800][index % 3], size=rng.integers(6))
        text = "".join((*picked, *map(chr, drawn)))
        yield text * (LONG // max(1, len(text))) if index % 1000 == 999 else text


@each
def test_no_text_raises_out_of_a_step(name):
    env = MADE[name]()
    tasks = env.sample(8, key("hostile"))
    states = [env.start(task)[0] for task in tasks]
    for index, action in enumerate(hostile(key("hostile", name))):
        number = index % len(tasks)
        (step,) = env.try_step([states[number]], [action])
        assert isinstance(step, Step), f"{action[:60]!r}: {step}"
        states[number] = env.start(tasks[number])[0] if step.done else step.state


@each
def test_the_check_of_environments_is_clean(name):
    results = check_environment(MADE[name](), tasks=6)
    assert [str(each) for each in results if not each.passed] == []


def recorded(name):
    """Observations, feedback and rewards of the expert and of random actions, on some training and held-out tasks."""
    env, episodes = MADE[name](), []
    for task in (*env.sample(4, key("recorded")), *env.panel(next(iter(env.panels)), 4).tasks):
        (state, observation), lines, done = env.start(task), [], False
        while not done:
            asked = extend(key("recorded"), task.id, len(lines))
            answer = env.advise(state, Moment(task.instruction, (), (), observation), asked)
            action = answer.action if generator(asked).random() < 0.7 else f"({len(lines) % 6 + 1}, 2)"
            (step,) = env.step([state], [action])
            state, observation, done = step.state, step.observation, step.done
            lines.append([action, observation, step.feedback, step.reward, step.success])
        episodes.append([task.id, lines])
    return episodes


@each
def test_the_same_task_and_actions_are_the_same_episode_in_another_process(name):
    code = f"import json; from test_promises import recorded; print(json.dumps(recorded({name!r})))"
    paths = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "7"}
    told = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert json.loads(told.stdout) == recorded(name)
