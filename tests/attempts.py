"""Hand-written attempts at tasks, for tests."""

from coevo.records.episode import Completion, Episode, Turn
from coevo.records.task import Task

SAFE = [
    ("at hall hold nothing . seen nothing", "go safe", "mug in safe"),
    ("at safe hold nothing . seen safe", "take mug", "hold mug"),
    ("at safe hold mug . seen safe", "go microwave", "nothing"),
    ("at microwave hold mug . seen safe microwave", "use microwave", "heat with microwave"),
    ("at microwave hold mug . seen safe microwave", "put counter", "done"),
]
"""A success: (observation, action, feedback) of every turn."""

STOVE = [
    *SAFE[:2],
    (SAFE[2][0], "go stove", "nothing"),
    ("at stove hold mug . seen safe", "use stove", "heat not stove"),
]
"""A failure that parts from it at the third turn; its last action ends the episode."""


def attempt(
    name,
    turns,
    *,
    success,
    instruction="house lotus . task heat mug to counter",
    scope="lotus",
    split="train",
    rewards=(),
):
    """An episode of the given turns: (observation, action, feedback) or those and the ids retrieved.

    ``rewards`` of the turns; without them the last one has 1 for a success.
    """
    task = Task("a", "k", instruction, scope, split, {})
    rewards = rewards or [float(success and turn == len(turns)) for turn in range(1, len(turns) + 1)]
    return Episode(
        id=f"1/rollout/{task.id}/{name}",
        task=task,
        revision=1,
        replica=0,
        turns=tuple(_turn(reward, *turn) for reward, turn in zip(rewards, turns, strict=True)),
        success=success,
        truncated=False,
    )


def _turn(reward, observation, action, feedback, retrieved=()):
    done = Completion((2,), (-0.5,), action, True)
    return Turn(observation, (1,), done, action, feedback, reward, True, retrieved)
