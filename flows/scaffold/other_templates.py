"""Texts of an environment with the methods that every one has, and of a recipe, each with its test."""

from coevo.flows.scaffold.part_templates import PartTemplate

_ENVIRONMENT = '''"""An environment: lockers that open with one of three tools each."""

import coevo

LOCKERS = ("amber", "blue", "coral", "green", "ivory", "olive", "pink", "white")
TOOLS = ("key", "crowbar", "code")
TRAINING, HELD_OUT = ("book", "coat", "lamp", "rope"), ("hat", "map")


def tasks_of(items, split):
    return [
        coevo.Task("$name", "open", f"open the {locker} locker for the {item}", locker, split, {})
        for item in items
        for locker in LOCKERS
    ]


class $cls(coevo.Environment):
    """Lockers that open with one of three tools each."""

    name, version, panels = "$name", "1", {"new-items": "items that training leaves out"}

    def sample(self, count, key):
        every = tasks_of(TRAINING, "train")
        return [every[index] for index in coevo.generator(key).permutation(len(every))[:count]]

    def panel(self, name, size):
        every = tasks_of(HELD_OUT, name)
        if name not in self.panels or size > len(every):
            raise coevo.CoevoError(f"$name has the panel new-items with up to {len(every)} tasks")
        return coevo.Panel(name, self.version, tuple(every[:size]))

    def start(self, task):
        return task, "at locker"

    def step(self, states, actions):
        return [self.advance(task, action) for task, action in zip(states, actions, strict=True)]

    def advance(self, task, action):
        tool = action.removeprefix("use ")
        if tool not in TOOLS:
            return coevo.Step(task, "at locker", "nothing happens", reward=0.0, done=True, success=False, valid=False)
        opens = tool == TOOLS[coevo.seed_of(coevo.key("$name", task.scope)) % len(TOOLS)]
        feedback = f"{task.scope} {'opens' if opens else 'stays shut'} with {tool}"
        return coevo.Step(task, "at locker", feedback, reward=float(opens), done=True, success=opens)

    def guide(self, task):
        return coevo.Guide(f"An action is 'use TOOL'. Tools: {', '.join(TOOLS)}.", verbs=("use",))
'''
_ENVIRONMENT_TEST = """import coevo
from $module import TOOLS, $cls


def test_it_keeps_the_promises_of_its_interface():
    results = coevo.check_environment($cls(), actions=[f"use {tool}" for tool in TOOLS])
    assert [str(each) for each in results if each.passed is False] == []


def test_one_tool_opens_each_locker():
    env = $cls()
    for task in env.sample(8, coevo.key("test")):
        assert sum(env.advance(task, f"use {tool}").success for tool in TOOLS) == 1
"""
ENVIRONMENT = PartTemplate("env", "coevo.envs", _ENVIRONMENT, _ENVIRONMENT_TEST)
RECIPE = """# A recipe of your own: CoEvo-RL on the embedded household, with some settings changed.
defaults: [recipes/homerules-coevo-rl]
iterations: 10
bank: {retrieval: {k: 3}}
"""
RECIPE_TEST = """import json
import subprocess
import sys
from pathlib import Path


def test_it_runs_on_this_machine():
    recipe = Path(__file__).with_name("$name.yaml")
    command = [sys.executable, "-P", "-m", "coevo.flows", "run", str(recipe), "--dry-run", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["iterations"] == 10
"""
