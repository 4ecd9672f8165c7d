"""Environments of the papers: steps per CPU-second on one core, and how often their experts succeed."""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from time import process_time

from benchmarks.bench import Bench, BenchResult
from coevo.configs.load.load import load_env
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.records.demonstration import Moment, PastTurn
from coevo.records.draws import extend, generator, key
from coevo.records.task import Task

STEPS, TASKS, EXPERT_TASKS = 60_000, 200, 2_000
ROUNDS = 3
"""Rounds of steps, of which the fastest counts: other work on the machine only slows them."""
TARGETS = {"sokoban": 50_000, "minesweeper": 8_000}
"""Steps per CPU-second by environment."""
EXPERTS: dict[str, tuple[str, tuple[str, ...], float]] = {
    "sokoban": ("sokoban", (), 1.0),
    "minesweeper, 3 mines": ("minesweeper", ("mines=3",), 0.95),
    "minesweeper, 4 mines": ("minesweeper", ("mines=4",), 0.93),
}
"""Environment, settings and least success of each expert."""

Actions = Callable[[Environment[object], Task], Sequence[str]]


def run(bench: Bench) -> None:
    """Measure what is missing and print the figures beside their targets."""
    for name, target in TARGETS.items():
        found = bench.cell(name, lambda name=name: speed(name, ACTIONS[name]))  # type: ignore[misc]
        print(f"{name:24}{found['steps_per_cpu_second']:>12,.0f} steps per CPU-second (target {target:,})")
    for name, (kind, settings, least) in EXPERTS.items():
        cell = name.replace(", ", "-").replace(" ", "-")
        found = bench.cell(f"expert-{cell}", lambda k=kind, s=settings: success(k, s))  # type: ignore[misc]
        free = f", {found['guess_free']:.3f} without a guess" if "guess_free" in found else ""
        print(
            f"{name:24}{found['success']:>12.3f} success of the expert, {found['tasks']} tasks (target {least}){free}"
        )


def speed(kind: str, actions: Actions, settings: Sequence[str] = ()) -> BenchResult:
    """Steps per CPU-second of one process, starts of episodes included, actions prepared before."""
    env = make(load_env(kind, settings))
    prepared = [(task, actions(env, task)) for task in env.sample(TASKS, key("environments", kind))]
    rates = []
    for _ in range(ROUNDS):
        since = process_time()
        steps = sum(1 for _ in islice(_stepped(env, prepared), STEPS))
        rates.append(steps / (process_time() - since))
    return {"steps_per_cpu_second": max(rates), "slowest_round": min(rates), "steps": STEPS, "tasks": TASKS}


def success(kind: str, settings: Sequence[str]) -> BenchResult:
    """Share of training and held-out tasks that the expert solves; of MineSweeper's, without a guess."""
    env = make(load_env(kind, settings))
    half = EXPERT_TASKS // 2
    tasks = (*env.sample(half, key("environments", kind)), *env.panel("held-out", half).tasks)
    played = [_expert(env, task) for task in tasks]
    result: BenchResult = {"success": sum(won for won, _ in played) / len(played), "tasks": len(played)}
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


def _expert(env: Environment[object], task: Task) -> tuple[bool, bool]:
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


ACTIONS: dict[str, Actions] = {"sokoban": _wandering, "minesweeper": _opening}
"""Actions that are timed, by environment."""
