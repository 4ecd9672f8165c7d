"""An environment whose every word is meant to deceive, and a policy that always acts the same."""

from typing import ClassVar

from coevo.envs.base import Environment, Step
from coevo.records.episode import Completion
from coevo.records.task import Panel, Task


class Hostile(Environment[int]):
    """Instruction, observation and feedback each carry a text; two turns solve every task."""

    name: ClassVar[str] = "hostile"
    version: ClassVar[str] = "1"
    panels: ClassVar[dict[str, str]] = {}

    def __init__(self, instruction="", observation="", feedback=""):
        self.says = (instruction, observation, feedback)

    def sample(self, count, key):
        return [Task(self.name, "find", f"find mug {self.says[0]}", "lotus", "train", {"n": n}) for n in range(count)]

    def panel(self, name, size):
        return Panel(name, self.version, ())

    def start(self, task):
        return 0, f"at hall {self.says[1]}"

    def step(self, states, actions):
        return [self._step(state, action) for state, action in zip(states, actions, strict=True)]

    def _step(self, state, action):
        done = state == 1
        return Step(state + 1, f"at hall {self.says[1]}", f"mug in safe {self.says[2]}", float(done), done, done)


class Scripted:
    """An engine that gives these texts, one per turn, and the last one for ever."""

    longest_prompt = 2**20

    def __init__(self, *texts):
        self.texts = list(texts) or ["Thought: so\nAction: go safe"]

    def forget(self):
        pass

    def load(self, policy):
        return {}

    def with_sampling(self, sampling):
        return self

    def generate(self, requests):
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return [Completion((1,), (-0.1,), text, True) for _ in requests]
