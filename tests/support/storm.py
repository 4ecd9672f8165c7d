"""A simulator whose episodes fail as their tasks say, each task with its own fate: for storms of failures."""

import os
import time
from dataclasses import replace
from pathlib import Path

from support.simulators import Household, HouseholdEpisode

from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.base import Step
from coevo.envs.stateful.stateful_environment import StatefulEnvironment
from coevo.records.draws import generator
from coevo.records.task import Panel, Task

LONG = "at hall " * 600
"""An observation longer than the longest prompt."""


def append(log, line):
    with Path(log).open("a") as file:
        file.write(f"{line}\n")


class Stormy:
    """A live episode of three turns; its fate strikes at the second."""

    def __init__(self, fate):
        self.fate, self.turn = fate, 0

    def act(self, action):
        self.turn += 1
        if self.turn == 2:
            if self.fate == "exit":
                os._exit(9)
            if self.fate == "raise":
                raise RuntimeError("struck")
            if self.fate == "hang":
                time.sleep(600)
        seen = LONG if self.fate == "long" and self.turn == 2 else "at hall "
        done = self.turn == 3
        return Step(None, seen, "mug in safe", float(done), done, done)

    def close(self):
        pass


class Storm(StatefulEnvironment):
    """Tasks with a fate, drawn from their number; a file ``log`` has the process of each episode."""

    name, version, panels = "storm", "1", {"storm": "the same"}

    def __init__(self, act_seconds=4.0, workers=2, log=None):
        self.log = log
        self.simulator = SimulatorConfig(act_seconds=act_seconds, workers=workers)

    def sample(self, count, key):
        numbers = generator(key).permutation(count)
        return [self.task(int(number), "train") for number in numbers]

    def panel(self, name, size):
        return Panel(name, self.version, tuple(self.task(10**6 + n, name) for n in range(size)))

    def task(self, number, split):
        """Of forty tasks one exits, one raises, two hang and two see too much: 5 % crash, hang and see too much."""
        fate = {0: "exit", 1: "raise", 2: "hang", 3: "hang", 4: "long", 5: "long"}.get(number % 40, "")
        return Task(
            self.name, fate or "calm", f"house lotus . task {number}", "lotus", split, {"n": number, "fate": fate}
        )

    def open(self, task, key):
        if self.log:
            append(self.log, os.getpid())
        return Stormy(task.data["fate"]), "at hall"


class StruckEpisode(HouseholdEpisode):
    """A live episode of the household; its fate strikes at the second action and is noted before."""

    def __init__(self, env, task, fate, note):
        super().__init__(env, task)
        self.fate, self.note, self.turn = fate, note, 0

    def act(self, action):
        self.turn += 1
        struck = self.fate if self.turn == 2 else ""
        if struck:
            self.note()
        if struck == "exit":
            os._exit(9)
        if struck == "hang":
            time.sleep(600)
        step = super().act(action)
        return replace(step, observation=LONG) if struck == "long" else step


class StruckHousehold(Household):
    """The household as a simulator in which one training task of twenty exits, one hangs, and one sees too much.

    The file ``log`` has also the task and the fate of each episode that is struck.
    """

    def open(self, task, key):
        _, seen = super().open(task, key)
        drawn = int(generator(key).integers(20)) if task.split == "train" else None
        fate = {0: "exit", 1: "hang", 2: "long"}.get(drawn, "")
        return StruckEpisode(self.pure, task, fate, lambda: self.note(task, fate)), seen

    def note(self, task, fate):
        append(self.log, f"{fate} {task.id}")
