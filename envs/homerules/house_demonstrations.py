"""Expert material of fresh worlds, so that cloning teaches to follow lessons and never an answer."""

from collections.abc import Sequence

import numpy as np

from coevo.envs.homerules.house_conventions import Facts, facts, fresh
from coevo.envs.homerules.house_expert import answer, guess
from coevo.envs.homerules.house_tasks import draw_goal, guide_of
from coevo.envs.homerules.house_world import DONE, HALL, HOUSES, LEVELS, OTHER_HOUSES, Goal, HouseView
from coevo.envs.homerules.rules import advance, begin, observe
from coevo.records.demonstration import Answer, Demonstration, Moment, Note, PastTurn
from coevo.records.draws import Key, extend, generator

MOST_WARNINGS = 2
"""Maximum number of appliances that an episode warns of: all that fail."""
LESSONS = 3
"""Number of lessons in a full prompt."""
ALL_RELEVANT, ONE_RELEVANT = 0.4, 0.3
"""Shares of episodes with every relevant fact, and with one of them; the others have none."""
UNFILLED, WARNED, MISLED = 0.25, 0.5, 0.125
"""Shares of episodes without distractors, with warnings about appliances, and with false lessons only."""
RECITED, ABSENT = 6, 2
"""Number of lessons in a recitation drill, and of other keys that it asks for."""
NAMES = HOUSES + OTHER_HOUSES
"""Every house of the vocabulary."""


def episode(level: int, draw: Key, extra: int = 0) -> list[Demonstration]:
    """One expert episode in a house of a fresh world, one demonstration per turn; ``extra`` lengthens a full prompt."""
    goal, rng = draw_goal(level, NAMES, extend(draw, "goal")), generator(extend(draw, "lessons"))
    truth = facts(level, fresh(draw), goal.house)
    told = truth.contrary(rng) if rng.random() < MISLED else truth
    return _play(goal, truth, _lessons(goal, told, rng, LESSONS + extra), extend(draw, "answer"))


def drill(level: int, draw: Key) -> Demonstration:
    """One recitation drill: lessons of a house, to be repeated in another order among keys without a lesson."""
    rng = generator(draw)
    known = facts(level, fresh(draw), NAMES[rng.integers(len(NAMES))])
    subjects = shuffled(known.subjects, rng)[: RECITED + ABSENT]
    lessons = tuple(known.lesson(subject) for subject in subjects[:RECITED])
    asked = shuffled(subjects, rng)
    recited = [known.lesson(name) if name in subjects[:RECITED] else _guess(known, name, rng) for name in asked]
    instruction = f"house {known.house} . recite {' '.join(asked)}"
    start = HouseView(HALL, "", "", (), "").text()
    return Demonstration(Moment(instruction, tuple(map(Note, lessons)), (), start), Answer(" . ".join(recited), DONE))


def distractors(goal: Goal, known: Facts, rng: np.random.Generator) -> list[str]:
    """Subjects of one house that are unrelated to a goal, in random order."""
    return shuffled([subject for subject in known.subjects if subject not in goal.subjects], rng)


def shuffled(words: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Words in random order."""
    return [words[index] for index in rng.permutation(len(words))]


def _lessons(goal: Goal, told: Facts, rng: np.random.Generator, full: int) -> tuple[str, ...]:
    relevant, share = shuffled(goal.subjects, rng), rng.random()
    kept = relevant if share < ALL_RELEVANT else relevant[: share < ALL_RELEVANT + ONE_RELEVANT]
    lessons = [told.lesson(subject) for subject in kept]
    if goal.family in told.appliance and rng.random() < WARNED:
        lessons += shuffled(told.warnings(goal.family), rng)[: rng.integers(1, MOST_WARNINGS + 1)]
    if rng.random() >= UNFILLED:
        lessons += map(told.lesson, distractors(goal, told, rng)[: max(0, full - len(lessons))])
    return tuple(shuffled(lessons, rng))


def _play(goal: Goal, truth: Facts, lessons: tuple[str, ...], draw: Key) -> list[Demonstration]:
    state, shown = begin(goal, truth), list[Demonstration]()
    observation, history, done = observe(state), tuple[PastTurn, ...](), False
    guide = guide_of(goal, truth.level).text
    while not done:
        moment = Moment(goal.instruction(), tuple(map(Note, lessons)), history, observation, guide)
        said = answer(moment, truth.level, extend(draw, len(history)))
        shown.append(Demonstration(moment, said))
        step = advance(state, said.action)
        history = (*history, PastTurn(observation, said.action, step.feedback))
        state, observation, done = step.state, step.observation, step.done
    return shown


def _guess(known: Facts, subject: str, rng: np.random.Generator) -> str:
    level = LEVELS[known.level]
    choices = level.places if subject in known.storage else level.appliances[subject]
    return guess(known.house, subject, choices[rng.integers(len(choices))])
