"""Actions on a simulator of minigrid: their outcome in words, and repeating them to reach a point of an episode."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np

from coevo.envs.babyai.babyai_contents import ACTIONS, BLOCKED, NOTHING

Taken = TypeVar("Taken")
_OUTCOMES = {
    "turn left": "turned",
    "turn right": "turned",
    "go forward": "moved",
    "pick up": "taken",
    "drop": "dropped",
    "toggle": "opened",
}


class Rewindable(ABC, Generic[Taken]):
    """A simulator for one thread at a time, which is brought to the point after some actions.

    If it is at another point, it continues, or restarts and repeats the actions.
    """

    def __init__(self) -> None:
        self._taken: tuple[str, ...] = ()
        self._restart()

    @abstractmethod
    def _restart(self) -> None:
        """Return to the beginning."""

    @abstractmethod
    def _take(self, action: str) -> Taken:
        """Take one action; return its result."""

    def _go(self, actions: tuple[str, ...]) -> None:
        """Reach the point after these actions."""
        if self._taken != actions[: len(self._taken)]:
            self._taken = ()
            self._restart()
        for action in actions[len(self._taken) :]:
            self._next(action)

    def _next(self, action: str) -> Taken:
        """Take one action at this point; return its result."""
        result = self._take(action)
        self._taken = (*self._taken, action)
        return result


def move(level: Any, action: str) -> tuple[Any, float, str]:
    """Take an action in a level of minigrid; an unknown one passes the time.

    Returns:
        minigrid's code of the action, the reward, and the outcome in words.
    """
    code = level.actions(ACTIONS.index(action)) if action in ACTIONS else level.actions.done
    before = _look(level)
    _, reward, _, _, _ = level.step(code)
    return code, float(reward), _outcome(action, before, _look(level))


def _look(level: Any) -> tuple[Any, ...]:
    """Parts that an action can change: the agent, its hands, and the cell in front of it."""
    front = level.grid.get(*level.front_pos)
    position = tuple(int(number) for number in np.asarray(level.agent_pos))
    return position, int(level.agent_dir), level.carrying, front, bool(getattr(front, "is_open", False))


def _outcome(action: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> str:
    if before == after:
        return BLOCKED if action == "go forward" else NOTHING
    return _OUTCOMES[action]
