"""Environments of the papers: steps per CPU-second on one core, and how often their experts succeed."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import cycle, islice
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import Any

import psutil

from benchmarks.bench import Bench, BenchResult
from coevo.configs.load.load import load_env
from coevo.configs.rows_config import HELD_OUT
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.envs.tau2 import Tau2
from coevo.envs.webshop import WebShop
from coevo.envs.webshop.webshop import first_hit
from coevo.records.demonstration import Moment, PastTurn
from coevo.records.draws import extend, generator, key
from coevo.records.task import Task

STEPS, TASKS, EXPERT_TASKS = 60_000, 200, 2_000
ROUNDS = 3
"""Rounds of steps, of which the fastest counts: other work on the machine only slows them."""
TARGETS: dict[str, tuple[str, tuple[str, ...], int]] = {
    "sokoban": ("sokoban", (), 50_000),
    "minesweeper": ("minesweeper", (), 8_000),
    "webshop, 1,000 products": ("webshop", ("products=1000",), 5_000),
    "webshop, 100,000 products": ("webshop", ("products=100000",), 3_000),
}
"""Environment, settings and steps per CPU-second."""
MAX_FIRST_HIT, MAX_INDEX_SECONDS, MAX_INDEX_GIB = 0.4, 60.0, 2.0
EXPERTS: dict[str, tuple[str, tuple[str, ...], float]] = {
    "sokoban": ("sokoban", (), 1.0),
    "minesweeper, 3 mines": ("minesweeper", ("mines=3",), 0.95),
    "minesweeper, 4 mines": ("minesweeper", ("mines=4",), 0.93),
    "webshop": ("webshop", (), 1.0),
}
"""Environment, settings and least success of each expert."""

ENDING_CALL = '{"name": "done", "arguments": {}}'
MIN_EPISODES = 12
"""Reference episodes of tau2's telecom per CPU-second."""
Actions = Callable[[Environment[object], Task], Sequence[str]]


def run(bench: Bench) -> None:
    """Measure what is missing and print the figures beside their targets."""
    for name, (kind, settings, target) in TARGETS.items():
        found = bench.cell(_cell(name), partial(speed, kind, settings))
        print(f"{name:28}{found['steps_per_cpu_second']:>12,.0f} steps per CPU-second (target {target:,})")
        if "index_seconds" in found:
            seconds, gib = found["index_seconds"], found["gib"]
            print(f"{'':28}{seconds:>12.1f} s for catalogue and index (target {MAX_INDEX_SECONDS:.0f}), ", end="")
            print(f"{gib:.2f} GiB in the process (target {MAX_INDEX_GIB:.0f})")
    for name, (kind, settings, least) in EXPERTS.items():
        found = bench.cell(f"expert-{_cell(name)}", partial(success, kind, settings))
        free = f", {found['guess_free']:.3f} without a guess" if "guess_free" in found else ""
        if "first_hit" in found:
            free = f", {found['first_hit']:.3f} by the instruction's first hit (at most {MAX_FIRST_HIT})"
        print(
            f"{name:28}{found['success']:>12.3f} success of the expert, {found['tasks']} tasks (target {least}){free}"
        )

    if not os.environ.get("TAU2_BENCH_DIR"):
        print(f"{'tau2':28}skipped: TAU2_BENCH_DIR names no checkout of tau2-bench")
        return
    found = bench.cell("tau2", desk)
    rate, solved = found["episodes_per_cpu_second"], f"{found['solved']} of {found['tasks']} solved"
    print(f"{'tau2, telecom solo':28}{rate:>12,.1f} reference episodes per CPU-second ", end="")
    print(f"(target {MIN_EPISODES}), {solved}, {found['solved_empty']} of {found['tasks_empty']} by an empty agent")


def desk() -> BenchResult:
    """Reference episodes of telecom per CPU-second, of this process and its one worker, which has started before."""
    with closing(make(load_env("tau2", ("simulator.workers=1",)))) as env:
        assert isinstance(env, Tau2)
        held_out = env.panel(env.played, len(env.domain.splits[HELD_OUT])).tasks
        tasks = (*env.sample(EXPERT_TASKS, key("environments")), *held_out)
        empty = [env.step([env.start(task)[0]], [ENDING_CALL])[0].success for task in held_out]
        since = _cpu_seconds()
        solved = [_expert(env, task)[0] for task in tasks]
        spent = _cpu_seconds() - since
    return {
        "episodes_per_cpu_second": len(tasks) / spent,
        "solved": sum(solved),
        "tasks": len(tasks),
        "solved_empty": sum(empty),
        "tasks_empty": len(empty),
    }


def speed(kind: str, settings: Sequence[str]) -> BenchResult:
    """Steps per CPU-second of one process, starts of episodes included, actions prepared before."""
    since = process_time()
    env = make(load_env(kind, settings))
    built: BenchResult = {}
    if isinstance(env, WebShop):
        env.catalogue.index.search("lamp", 1)
        built["index_seconds"] = process_time() - since
        built["gib"] = getrusage(RUSAGE_SELF).ru_maxrss / 2**20
    prepared = [(task, ACTIONS[kind](env, task)) for task in env.sample(TASKS, key("environments", kind))]
    rates = []
    for _ in range(ROUNDS):
        since = process_time()
        steps = sum(1 for _ in islice(_stepped(env, prepared), STEPS))
        rates.append(steps / (process_time() - since))
    return built | {"steps_per_cpu_second": max(rates), "slowest_round": min(rates), "steps": STEPS, "tasks": TASKS}


def success(kind: str, settings: Sequence[str]) -> BenchResult:
    """Share of training and held-out tasks that the expert solves; of MineSweeper's, without a guess."""
    env = make(load_env(kind, settings))
    half = EXPERT_TASKS // 2
    tasks = (*env.sample(half, key("environments", kind)), *env.panel("held-out", half).tasks)
    played = [_expert(env, task) for task in tasks]
    result: BenchResult = {"success": sum(won for won, _ in played) / len(played), "tasks": len(played)}
    if isinstance(env, WebShop):
        result["first_hit"] = sum(first_hit(env, task).success for task in tasks) / len(tasks)
    if kind == "minesweeper":
        result["guess_free"] = sum(won and free for won, free in played) / len(played)
    return result


def _stepped(env: Environment[object], prepared: Sequence[tuple[Task, Sequence[str]]]) -> Iterator[object]:
    """Steps of one episode after the other, each until it is done or its actions are used up."""
    for task, actions in cycle(prepared):
        state, _ = env.start(task)
        for action in actions:
            (step,) = env.step([state], [action])
            yield step
            state = step.state
            if step.done:
                break


def _expert(env: Environment[Any], task: Task) -> tuple[bool, bool]:
    """Success of the expert, and whether it never guessed after its first action."""
    (state, observation), history, free = env.start(task), tuple[PastTurn, ...](), True
    while True:
        moment = Moment(task.instruction, (), history, observation)
        answer = env.advise(state, moment, extend(key("environments"), task.id, len(history)))
        free = free and (not history or answer.thought == "safe")
        (step,) = env.step([state], [answer.action])
        history = (*history, PastTurn(observation, answer.action, step.feedback))
        state, observation = step.state, step.observation
        if step.done:
            return step.success, free


def _wandering(env: Environment[object], task: Task) -> list[str]:
    directions = env.guide(task).verbs
    return [directions[index] for index in generator(key("environments", task.id)).integers(4, size=100)]


def _opening(env: Environment[object], task: Task) -> list[str]:
    """Safe cells in random order, then the mines."""
    size, mines = int(task.data["size"]), set(task.data["mines"])
    order = [int(cell) for cell in generator(key("environments", task.id)).permutation(size * size)]
    ordered = sorted(order, key=lambda cell: cell in mines)
    return [f"({cell // size + 1}, {cell % size + 1})" for cell in ordered]


def _shopping(env: Environment[object], task: Task) -> list[str]:
    """The oracle's actions: a search, a product, its options, the purchase."""
    (state, observation), actions = env.start(task), list[str]()
    while True:
        actions.append(env.advise(state, Moment(task.instruction, (), (), observation), key("environments")).action)
        (step,) = env.step([state], actions[-1:])
        state, observation = step.state, step.observation
        if step.done:
            return actions


def _cpu_seconds() -> float:
    """Seconds of this process and of all that it started and that still run."""
    here = psutil.Process()
    times = [each.cpu_times() for each in (here, *here.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def _cell(name: str) -> str:
    return name.replace(", ", "-").replace(",", "").replace(" ", "-")


ACTIONS: dict[str, Actions] = {"sokoban": _wandering, "minesweeper": _opening, "webshop": _shopping}
"""Actions that are timed, by environment."""
