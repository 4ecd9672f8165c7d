"""Lessons of a world: the reading probe, with true and false ones, and those that an episode reveals.

The probe tests if a policy follows its lessons, in a world that it has never met.
"""

from itertools import count

from coevo.envs.base import Probe, Revealed
from coevo.envs.homerules.house_conventions import facts, fresh
from coevo.envs.homerules.house_demonstrations import NAMES, distractors, shuffled
from coevo.envs.homerules.house_tasks import draw_goal, facts_of, goal_of, task_of
from coevo.envs.homerules.house_world import Goal
from coevo.records.draws import Key, extend, generator
from coevo.records.episode import Episode


def probe(size: int, level: int, draw: Key, extra: int = 0) -> Probe:
    """Draw ``size`` different tasks of one fresh world with all relevant lessons: once true, once false.

    No other lesson is given if retrieval selects by task; otherwise ``extra`` lessons about other things.
    """
    world, goals = fresh(extend(draw, "probe")), dict[Goal, None]()
    for index in count():
        if len(goals) == size:
            break
        goals[draw_goal(level, NAMES, extend(draw, "probe", index))] = None
    told = [_lessons(goal, level, world, extend(draw, "lessons", *goal), extra) for goal in goals]
    tasks = tuple(task_of(goal, level, world, "probe") for goal in goals)
    return Probe(tasks, tuple(right for right, _ in told), tuple(wrong for _, wrong in told))


def revealed(episode: Episode) -> list[Revealed]:
    """Notes in the order of the steps, each with its first step."""
    goal, known = goal_of(episode.task), facts_of(episode.task)
    about = {known.lesson(subject): subject for subject in goal.subjects}
    if goal.family in known.appliance:
        about |= dict.fromkeys(known.warnings(goal.family), goal.family)
    found = dict[str, Revealed]()
    for step, turn in enumerate(episode.turns):
        note = f"{goal.house} {turn.feedback}"
        if note in about and note not in found:
            found[note] = Revealed(note, f"a task in house {goal.house} needs {about[note]}", step)
    return list(found.values())


def _lessons(goal: Goal, level: int, world: str, draw: Key, extra: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rng, truth = generator(draw), facts(level, world, goal.house)
    subjects = shuffled(goal.subjects, rng)
    lies = truth.contrary(rng)
    told = shuffled([*subjects, *distractors(goal, truth, rng)[:extra]], rng) if extra else subjects
    return tuple(map(truth.lesson, told)), tuple(map(lies.lesson, told))
