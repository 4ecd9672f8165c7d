"""Episodes with slow tools at the pace of episodes, against the bound that tools and engine set.

128 episodes of 20 turns on a real vLLM server of tiny size; a tool call takes 0.3 s, 2 % of them 10 s. No schedule can
be faster than the longest episode, which is its tool time and its turns at the latency of an idle server, nor than the
engine, whose time is that of the same episodes with tools that take no time.
"""

import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from statistics import median
from typing import Any

from benchmarks.bench import Bench, BenchResult
from coevo.configs.context_config import ContextConfig
from coevo.configs.policy_config import ScratchPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, VllmEngineConfig
from coevo.envs.base import Environment, Step
from coevo.models.engines.requests import Request
from coevo.models.engines.vllm.vllm_engine import VllmEngine
from coevo.models.policy.context import CONTEXT_WORDS, Context
from coevo.models.policy.policy import build, save
from coevo.records.draws import Key, extend, generator, key
from coevo.records.task import Panel, Task
from coevo.tasks.play.play import Attempt, RolloutWorker

EPISODES, TURNS = 128, 20
USUAL, SLOW, SHARE = 0.3, 10.0, 0.02
"""Seconds of a tool call, of a slow one, and the share of these."""
SAMPLING = SamplingConfig(temperature=1.0, max_new_tokens=12)
WORDS = tuple(f"w{number}" for number in range(100))
TARGET = 1.2
PROBES = 20

TimedState = tuple[Task, int]


class Tools(Environment[TimedState]):
    """Episodes whose actions call a tool that takes its time; ``factor`` scales that."""

    name, version = "tools", "1"
    panels = {}  # noqa: RUF012
    concurrent = True

    def __init__(self, factor: float) -> None:
        self._factor = factor

    def sample(self, count: int, key: Key) -> list[Task]:
        """Tasks by number."""
        return [Task(self.name, "tool", f"w1 w{n % 100} w{n // 100}", "", "train", {"n": n}) for n in range(count)]

    def panel(self, name: str, size: int) -> Panel:
        """No panel has tasks."""
        return Panel(name, self.version, ())

    def start(self, task: Task) -> tuple[TimedState, str]:
        """First state and observation."""
        return (task, 0), _seen(task, 0)

    def step(self, states: Sequence[TimedState], actions: Sequence[str]) -> list[Step[TimedState]]:
        """Wait for each tool, then for the next."""
        return [self._called(*state) for state in states]

    def _called(self, task: Task, turn: int) -> Step[TimedState]:
        time.sleep(self._factor * seconds_of(task, turn))
        done = turn + 1 == TURNS
        return Step((task, turn + 1), _seen(task, turn + 1), "w2", 0.0, done=done, success=False)


def seconds_of(task: Task, turn: int) -> float:
    """Seconds of a tool call."""
    return SLOW if generator(key("tool", task.id, turn)).random() < SHARE else USUAL


def _seen(task: Task, turn: int) -> str:
    return " ".join(WORDS[n] for n in generator(key("seen", task.id, turn)).integers(0, len(WORDS), 24))


def run(bench: Bench) -> None:
    """Measure it where it is missing, and print it beside its bound."""
    report(bench.cell("cpu", partial(measure, bench)))


def report(found: BenchResult) -> None:
    """Print the wall-clock time and the two bounds."""
    print(
        f"\n{EPISODES} episodes of {TURNS} turns: {found['seconds']:.1f} s, {found['ratio']:.2f} times the bound "
        f"(target {TARGET:g}): longest episode {found['longest']:.1f} s, engine {found['engine']:.1f} s; "
        f"{found['latency'] * 1000:.0f} ms for a turn of an idle server, {found['tools']:.0f} s of tools in all"
    )


def measure(bench: Bench) -> BenchResult:
    """Play the episodes with and without tool time on one server."""
    directory = bench.workspace.root
    shutil.rmtree(directory, ignore_errors=True)
    save(build(ScratchPolicyConfig(), (*WORDS, *CONTEXT_WORDS), key("pace")), directory / "policy")
    with closing(
        VllmEngine(directory / "policy", VllmEngineConfig(type="vllm"), SAMPLING, directory / "engine")
    ) as engine:
        latency = _latency(engine)
        busy, seconds = _played(engine, 0.0), _played(engine, 1.0)
    spent = [sum(seconds_of(task, turn) for turn in range(TURNS)) for task in Tools(1.0).sample(EPISODES, key(0))]
    longest = max(spent) + TURNS * latency
    found = {"seconds": seconds, "engine": busy, "longest": longest, "latency": latency, "tools": sum(spent)}
    return found | {"ratio": seconds / max(longest, busy)}


def _played(engine: VllmEngine, factor: float) -> float:
    """Seconds until all episodes are over."""
    engine.forget()
    env: Environment[Any] = Tools(factor)
    context = Context(ContextConfig(memory_length=4), engine.policy.tokenizer)
    worker = RolloutWorker(env, context, engine, TURNS, alone=True)
    attempts = [Attempt(task, 0, (), "pace", 0, key("pace", task.id)) for task in env.sample(EPISODES, key(0))]
    since = time.perf_counter()
    worker.play(attempts)
    return time.perf_counter() - since


def _latency(engine: VllmEngine) -> float:
    """Median seconds of a single request."""
    draws, taken = generator(key("idle")), list[float]()
    for number in range(PROBES):
        prompt = tuple(int(token) for token in draws.integers(6, 6 + len(WORDS), 64))
        since = time.perf_counter()
        engine.generate([Request(prompt, extend(key("idle"), number), str(number))])
        taken.append(time.perf_counter() - since)
    return median(taken)
