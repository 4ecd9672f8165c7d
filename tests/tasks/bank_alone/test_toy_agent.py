"""A toy agent learns where things are: judged lessons help it, planted harmful ones stay out."""

from random import Random

import pytest

import coevo

PLACES = ("safe", "drawer", "shelf", "basket")
THINGS = ("mug", "key", "lamp", "coin", "ring", "book", "pen", "cup", "box", "rope")
HOUSES = ("lotus", "cedar", "maple", "birch")
TASKS = [(house, thing) for house in HOUSES for thing in THINGS]
HARMFUL = 20


def world(seed):
    """Right place of each thing of each house."""
    draw = Random(f"world/{seed}")
    return {task: draw.choice(PLACES) for task in TASKS}


def lesson(task, place):
    _, thing = task
    return {"strategy": f"the {thing} is in the {place}", "condition": f"find the {thing}"}


def play(memory, truth, task, draw):
    """Reward of one episode: the agent goes where the best lesson about the thing says, else anywhere."""
    house, thing = task
    told = [hit.entry.strategy for hit in memory.retrieve(f"find the {thing}", house)]
    places = [text.split()[-1] for text in told if f"the {thing} is" in text]
    went = places[0] if places else Random(f"episode/{task}/{draw}").choice(PLACES)
    return float(went == truth[task])


def success(memory, truth, draws=range(25)):
    return sum(play(memory, truth, task, draw) for task in TASKS for draw in draws) / (len(TASKS) * len(draws))


def written(truth, seed):
    """A right lesson of each task, and harmful ones of some, in a drawn order, by house."""
    draw = Random(f"lessons/{seed}")
    wrong = {task: draw.choice([place for place in PLACES if place != truth[task]]) for task in TASKS}
    lessons = [(task, truth[task]) for task in TASKS] + [(task, wrong[task]) for task in draw.sample(TASKS, HARMFUL)]
    draw.shuffle(lessons)
    return {house: [lesson(task, place) for task, place in lessons if task[0] == house] for house in HOUSES}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_judged_lessons_help_and_harmful_ones_stay_out(tmp_path, seed):
    truth = world(seed)
    right = {(house, f"the {thing} is in the {place}") for (house, thing), place in truth.items()}
    lessons = written(truth, seed)
    judged, plain = (coevo.open_bank(tmp_path / name, k=3) for name in ("judged", "plain"))

    def replay(memory, entry, draws):
        task = (entry.scope, entry.condition.split()[-1])
        return [play(memory, truth, task, draw) for draw in draws]

    start = success(judged, truth)
    for half in (0, 1, 0):  # the first half is proposed again, its harmful lessons included
        for house in HOUSES:
            judged.propose(lessons[house][half::2], scope=house)
        judged.learn(replay)
    for house in HOUSES:
        plain.add(lessons[house], scope=house)
    assert abs(start - 0.25) < 0.04
    assert success(judged, truth) >= 0.95
    assert {(entry.scope, entry.strategy) for entry in judged.entries()} <= right  # none of the 20 harmful
    assert len(plain.entries()) == len(TASKS) + HARMFUL
    assert success(plain, truth) <= 0.9
    print(f"seed {seed}: {start:.3f} -> judged {success(judged, truth):.3f}, plain {success(plain, truth):.3f}")


def test_lessons_without_effect_seldom_enter_however_often_they_are_proposed(tmp_path):
    bank = coevo.open_bank(tmp_path)

    def replay(memory, entry, draws):
        side = len(memory.retrieve(entry.strategy))
        return [float(Random(f"{entry.id}/{draw}/{side}").random() < 0.5) for draw in draws]

    names = [f"lesson {number}" for number in range(60)]
    for _ in range(4):
        bank.propose(names)
        bank.learn(replay, replays=16)
    assert len(bank.entries()) <= 0.05 * len(names)
