"""Stateful simulators for tests: a counter that behaves well, and one that fails as its actions say."""

import asyncio
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from threading import Timer

from numpy import zeros

from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.base import Step
from coevo.envs.homerules import HomeRules
from coevo.envs.stateful.stateful_environment import StatefulEnvironment
from coevo.records.draws import generator, seed_of
from coevo.records.draws import key as root_key
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError


class Sum:
    """A live episode: it adds the numbers of actions, with noise from its key."""

    def __init__(self, target, key, log):
        self.noise, self.total, self.target, self.turns = generator(key), 0, target, 0
        self.log = log
        self.note("open")

    def note(self, word):
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{word} {os.getpid()}\n")

    def act(self, action):
        self.turns += 1
        known = action.isdecimal()
        self.total += int(action) + int(self.noise.integers(3)) if known else 0
        done = self.total >= self.target
        seen = f"total {self.total}"
        return Step(None, seen, f"added {action}" if known else "not a number", float(done), done, done, known)

    def close(self):
        self.note("close")


class PanicError(BaseException):
    """Panic of a package in Rust: no ``Exception``."""


class UnsayableError(RuntimeError):
    """An exception whose text cannot be made."""

    def __str__(self):
        raise ValueError


RAISED = {
    "raise": RuntimeError("out of\norder"),
    "cancel": asyncio.CancelledError(),
    "leave": SystemExit("no\nserver"),
    "panic": PanicError("in Rust"),
    "interrupt": KeyboardInterrupt(),
    "group": BaseExceptionGroup("all", [PanicError("one")]),
    "unsayable": UnsayableError(),
}
"""Exceptions by the action that raises them."""


STEPS = {
    "long": Step(None, "x" * 5000, "", 0.0, False, False),
    "nan": Step(None, "x", "", float("nan"), False, False),
    "text": Step(None, 7, "", 0.0, False, False),
    "array": Step(None, zeros(2), "", 0.0, False, False),
    "nothing": None,
}
"""Results that are no step by the action that returns them."""


class Failing(Sum):
    """A live episode that fails as its action says."""

    def act(self, action):
        if action in RAISED:
            raise RAISED[action]
        if action in STEPS:
            return STEPS[action]
        self.harm(action)
        return super().act(action)

    def harm(self, action):
        """Do it; what comes later is noted with its process."""
        if action == "exit":
            os._exit(3)
        if " later" in action or "fork" in action:
            self.note("trouble")
        if action.startswith("SIG"):
            os.kill(os.getpid(), signal.Signals[action])
        if action == "hang":
            time.sleep(600)
        if action.startswith("fork") and (child := os.fork()) and action == "fork and wait":
            os.waitpid(child, 0)
        if action == "die later":
            Timer(0.2, os._exit, (5,)).start()
        if action == "end guard later":
            Timer(0.2, os.kill, (os.getppid(), signal.SIGKILL)).start()


class Later(Sum):
    """A live episode whose methods are coroutines."""

    async def act(self, action):
        return super().act(action)

    async def close(self):
        await asyncio.sleep(0)
        super().close()


class Sums(StatefulEnvironment):
    """Sums to a target."""

    name, version, panels = "sums", "1", {"far": "far targets"}
    live = Sum

    def __init__(self, log="", target=5, limits=None):
        self.log, self.target = log, target
        self.simulator = SimulatorConfig(**(limits or {"act_seconds": 10.0}))

    def sample(self, count, key):
        return [self.task(f"{seed_of(key)}/{n}", "train") for n in range(count)]

    def panel(self, name, size):
        if name not in self.panels:
            raise CoevoError(f"sums has the panel far, not {name!r}")
        return Panel(name, self.version, tuple(self.task(f"far {n}", name) for n in range(size)))

    def task(self, name, split):
        return Task("sums", "sum", f"reach {self.target}", "", split, {"target": self.target, "name": name})

    def open(self, task, key):
        if str(task.data["name"]).startswith("broken"):
            raise ValueError("cannot open")
        if str(task.data["name"]).startswith("slow"):
            time.sleep(600)
        return self.live(task.data["target"], key, self.log), "total 0"


class Scored(Sum):
    """A live episode that says what its rewards are made of; sometimes badly."""

    def act(self, action):
        parts = {"nan": (("exact", float("nan")),), "name": (("a/b\n", 1.0),)}
        return Step(None, "seen", "", 0.0, False, False, scores=parts.get(action, (("exact", 1), ("short", 0.5))))


class ScoredSums(Sums):
    """Sums with the parts of their rewards."""

    live = Scored


class FailingSums(Sums):
    """Sums whose live episodes fail as their actions say."""

    live = Failing

    def open(self, task, key):
        live, seen = super().open(task, key)
        return live, zeros(2) if task.data["name"] == "array" else seen


class Shaky(Failing):
    """A live episode that fails at some steps of all, drawn by their number over all processes."""

    def act(self, action):
        self.note("step")
        steps = Path(self.log).read_text().count("step")
        if generator(root_key("trouble", steps)).random() < ShakySums.share:
            return super().act(Path(self.log).with_name("trouble").read_text())
        return super().act(action)


class ShakySums(Sums):
    """Sums whose simulator fails at a share of the steps, also of those that are played again."""

    live, share = Shaky, 0.04


class OnceSums(Sums):
    """Sums whose first episode fails when it is opened for the n-th time, n in ``bad``."""

    def __init__(self, log, bad, **how):
        super().__init__(log, **how)
        self.bad = bad

    def open(self, task, key):
        live, seen = super().open(task, key)
        if Path(self.log).read_text().count("open") in self.bad:
            os._exit(8)
        return live, seen


class MixedSums(OnceSums):
    """As ``OnceSums``, with live episodes that fail as their actions say."""

    live = Failing


class HeavySums(Sums):
    """Sums whose workers take ``seconds`` to start, and whose tasks hold a document."""

    def __init__(self, seconds, **how):
        super().__init__(**how)
        self.seconds = seconds

    def __setstate__(self, state):
        time.sleep(state["seconds"])
        self.__dict__.update(state)

    def task(self, name, split):
        task = super().task(name, split)
        return replace(task, data=dict(task.data) | {"document": "x" * 600_000})


class Clinging(Sum):
    """A live episode that does not close."""

    def close(self):
        time.sleep(600)


class ClingingSums(Sums):
    """Sums whose live episodes do not close."""

    live = Clinging


class LateSums(Sums):
    """Sums whose live episodes open, act and close in coroutines."""

    live = Later

    async def open(self, task, key):
        await asyncio.sleep(0)
        return super().open(task, key)


class Clock:
    """A live episode that never repeats."""

    def act(self, action):
        return Step(None, f"{time.time_ns()}", "", 0.0, False, False)

    def close(self):
        pass


class Clocks(Sums):
    """Episodes that show the time, and pretend to repeat."""

    def open(self, task, key):
        return Clock(), f"{time.time_ns()}"


class HouseholdEpisode:
    """A live episode of the embedded household."""

    def __init__(self, env, task):
        self.env, (self.state, self.first) = env, env.start(task)

    def act(self, action):
        (step,) = self.env.step([self.state], [action])
        self.state = step.state
        return step

    def close(self):
        pass


class Household(StatefulEnvironment):
    """The embedded household as a stateful simulator: everything but a position is that of the pure one.

    A file ``log`` has the process of each episode.
    """

    name, version, panels = HomeRules.name, HomeRules.version, HomeRules.panels

    def __init__(self, log="", **options):
        self.log, self.pure = log, HomeRules(**options)

    def open(self, task, key):
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{os.getpid()}\n")
        live = HouseholdEpisode(self.pure, task)
        return live, live.first

    def sample(self, count, key):
        return self.pure.sample(count, key)

    def panel(self, name, size):
        return self.pure.panel(name, size)

    @property
    def vocabulary(self):
        return self.pure.vocabulary

    def expert(self, moment, key):
        return self.pure.expert(moment, key)

    def demonstrations(self, episodes, drills, key):
        return self.pure.demonstrations(episodes, drills, key)

    def probe(self, size, key):
        return self.pure.probe(size, key)

    def panel_bank(self, panel):
        return self.pure.panel_bank(panel)
