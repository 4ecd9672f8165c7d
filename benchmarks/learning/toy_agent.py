"""A toy agent that looks for things in houses: it goes where the best lesson says, else anywhere."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import coevo
from coevo.records.entry import Entry
from coevo.tasks.bank_alone.bank_reader import Retriever

PLACES = ("safe", "drawer", "shelf", "basket")
THINGS = ("mug", "key", "lamp", "coin", "ring", "book", "pen", "cup", "box", "rope")
HOUSES = ("lotus", "cedar", "maple", "birch")
HouseTask = tuple[str, str]
"""House, and the thing to find in it."""
TASKS: list[HouseTask] = [(house, thing) for house in HOUSES for thing in THINGS]
HARMFUL = 20
"""Planted lessons that name a wrong place."""
DRAWS = range(25)
"""Episodes of each task that success is measured by."""


def world(seed: int) -> dict[HouseTask, str]:
    """Right place of each thing of each house."""
    draw = Random(f"world/{seed}")
    return {task: draw.choice(PLACES) for task in TASKS}


def lesson(task: HouseTask, place: str) -> dict[str, str]:
    """A lesson that names the place of a task's thing."""
    _, thing = task
    return {"strategy": f"the {thing} is in the {place}", "condition": f"find the {thing}"}


def play(memory: Retriever, truth: dict[HouseTask, str], task: HouseTask, draw: int) -> float:
    """Reward of one episode."""
    house, thing = task
    told = [hit.entry.strategy for hit in memory.retrieve(f"find the {thing}", house)]
    places = [text.split()[-1] for text in told if f"the {thing} is" in text]
    went = places[0] if places else Random(f"episode/{task}/{draw}").choice(PLACES)
    return float(went == truth[task])


def success(memory: Retriever, truth: dict[HouseTask, str]) -> float:
    """Mean reward over all tasks."""
    return sum(play(memory, truth, task, draw) for task in TASKS for draw in DRAWS) / (len(TASKS) * len(DRAWS))


def written(truth: dict[HouseTask, str], seed: int) -> dict[str, list[dict[str, str]]]:
    """A right lesson of each task, and harmful ones of some, in a drawn order, by house."""
    draw = Random(f"lessons/{seed}")
    wrong = {task: draw.choice([place for place in PLACES if place != truth[task]]) for task in TASKS}
    lessons = [(task, truth[task]) for task in TASKS] + [(task, wrong[task]) for task in draw.sample(TASKS, HARMFUL)]
    draw.shuffle(lessons)
    return {house: [lesson(task, place) for task, place in lessons if task[0] == house] for house in HOUSES}


def replay_in(truth: dict[HouseTask, str]) -> Callable[[Retriever, Entry, Sequence[int]], list[float]]:
    """Replay function of a world."""

    def replay(memory: Retriever, entry: Entry, draws: Sequence[int]) -> list[float]:
        task = (entry.scope, entry.condition.split()[-1])
        return [play(memory, truth, task, draw) for draw in draws]

    return replay


def improve(folder: Path, seed: int) -> dict[str, Any]:
    """Let one bank judge the lessons and another one append them all; half of them are proposed twice.

    Returns:
        Success at the start and with each bank, and the number of harmful entries in each.
    """
    truth, judged, plain = world(seed), *(coevo.open_bank(folder / name, k=3) for name in ("judged", "plain"))
    right = {(house, lesson((house, thing), place)["strategy"]) for (house, thing), place in truth.items()}
    lessons, start = written(truth, seed), success(judged, truth)
    for half in (0, 1, 0):
        for house in HOUSES:
            judged.propose(lessons[house][half::2], scope=house)
        judged.learn(replay_in(truth))
    for house in HOUSES:
        plain.add(lessons[house], scope=house)
    banks = {"judged": judged, "plain": plain}
    harmful = {
        f"{name}_harmful": sum((entry.scope, entry.strategy) not in right for entry in bank.entries())
        for name, bank in banks.items()
    }
    return {"start": start, **{name: success(bank, truth) for name, bank in banks.items()}, **harmful}
