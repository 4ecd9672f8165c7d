"""True notes that an episode reveals: feedback that is a fact of the house about the task."""

from coevo.envs.base import Revealed
from coevo.envs.homerules.tasks import facts_of, goal_of
from coevo.records.episode import Episode


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
