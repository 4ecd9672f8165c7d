"""An expert that knows only its prompt: it follows lessons, and guesses without one."""

from collections.abc import Sequence

from coevo.envs.homerules.house_world import (
    FAMILIES,
    LEVELS,
    Goal,
    HouseView,
    inside,
    read_instruction,
    read_observation,
    works,
)
from coevo.records.demonstration import Answer, Moment
from coevo.records.draws import Key, extend, seed_of


def answer(moment: Moment, level: int, draw: Key) -> Answer:
    """Next thought and action of the expert; the thought repeats the fact that it relies on."""
    goal, view = read_instruction(moment.instruction), read_observation(moment.observation)
    told = _told(goal.house, [note.text for note in moment.lessons])
    if not view.held:
        return _fetch(goal, view, told, LEVELS[level].places, extend(draw, "place"))
    if goal.target and (view.effect or not FAMILIES[goal.family].appliances):
        return Answer("put", f"put {goal.target}")
    return _treat(goal, told, extend(draw, "appliance"))


def guess(house: str, subject: str, choice: str) -> str:
    """Thought of an agent without a lesson about a subject."""
    return f"{house} {subject} guess {choice}"


_Told = list[tuple[str, str, str]]


def _told(house: str, lessons: Sequence[str]) -> _Told:
    """Lessons about this house, as (subject, relation, noun); other text is ignored."""
    words = [lesson.split() for lesson in lessons]
    return [(said[1], said[2], said[3]) for said in words if len(said) == 4 and said[0] == house]


def _fetch(goal: Goal, view: HouseView, told: _Told, places: tuple[str, ...], draw: Key) -> Answer:
    if view.found and view.at == view.found:
        return Answer("take", f"take {goal.object}")
    if view.found:
        return Answer(f"{goal.house} {inside(goal.object, view.found)}", f"go {view.found}")
    unseen = [place for place in places if place not in view.seen]
    stored = [noun for subject, relation, noun in told if (subject, relation) == (goal.object, "in") and noun in unseen]
    if stored:
        return Answer(f"{goal.house} {inside(goal.object, stored[0])}", f"go {stored[0]}")
    choice = unseen[seed_of(draw) % len(unseen)]
    return Answer(guess(goal.house, goal.object, choice), f"go {choice}")


def _treat(goal: Goal, told: _Told, draw: Key) -> Answer:
    said = {
        relation: [noun for subject, also, noun in told if (subject, also) == (goal.family, relation)]
        for relation in ("with", "not")
    }
    appliances = FAMILIES[goal.family].appliances
    working = [noun for noun in said["with"] if noun in appliances]
    if working:
        return Answer(f"{goal.house} {works(goal.family, working[0])}", f"use {working[0]}")
    left = [noun for noun in appliances if noun not in said["not"]] or list(appliances)
    choice = left[seed_of(draw) % len(left)]
    return Answer(guess(goal.house, goal.family, choice), f"use {choice}")
