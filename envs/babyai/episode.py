"""Episodes: small states that name a point of an episode, and the simulator that is brought there.

A state is its level and the actions so far. The states of an episode share one simulator of minigrid; where it stands
elsewhere than at the state that is asked for, it goes on, or starts again and repeats the actions.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envs.babyai.bot import Bot
from envs.babyai.catalogue import ACTIONS, BLOCKED, NOTHING
from envs.babyai.language import View
from envs.babyai.level import Level
from envs.babyai.plan import Plan
from envs.base import Step
from records.demonstration import Answer

_OUTCOMES = {
    "turn left": "turned",
    "turn right": "turned",
    "go forward": "moved",
    "pick up": "taken",
    "drop": "dropped",
    "toggle": "opened",
}


class Simulator:
    """One level, to be used by one thread at a time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._guided = False
        self._restart()

    @property
    def mission(self) -> str:
        """The instruction."""
        return str(self._level.mission)

    def view(self, actions: tuple[str, ...]) -> str:
        """What the agent sees after these actions."""
        self._go(actions)
        return View(self._level).text()

    def advice(self, actions: tuple[str, ...]) -> Answer:
        """What the bot would do after these actions. Raises ``CoevoError`` where it does not know."""
        if not self._guided:
            self._guided = True
            self._restart()
        self._go(actions)
        assert self._bot is not None
        return self._bot.answer()

    def step(self, state: "State", action: str) -> "Step[State]":
        """One action more than the state has taken."""
        self._go(state.actions)
        reward, feedback = self._take(action)
        later = State(state.plan, (*state.actions, action), self)
        over = len(later.actions) >= self._plan.steps
        return Step(
            state=later,
            observation=View(self._level).text(),
            feedback=feedback,
            reward=reward,
            done=over or reward > 0,
            success=reward > 0,
            valid=action in ACTIONS,
            truncated=over and reward == 0,
            progress=self._reached,
        )

    def _restart(self) -> None:
        self._level = Level(self._plan)
        self._bot = Bot(self._level) if self._guided else None
        self._taken: tuple[str, ...] = ()
        self._reached = 0.0

    def _go(self, actions: tuple[str, ...]) -> None:
        if self._taken != actions[: len(self._taken)]:
            self._restart()
        for action in actions[len(self._taken) :]:
            self._take(action)

    def _take(self, action: str) -> tuple[float, str]:
        """Reward and outcome of the next action; one that is not known passes the time."""
        level = self._level
        code = level.actions(ACTIONS.index(action)) if action in ACTIONS else level.actions.done
        before = _look(level)
        _, reward, _, _, _ = level.step(code)
        self._taken = (*self._taken, action)
        self._reached = 1.0 if reward > 0 else max(self._reached, 0.5 * level.task.halfway())
        if self._bot is not None and reward == 0:
            self._bot.watch(code)
        return float(reward), _outcome(action, before, _look(level))


@dataclass(frozen=True, slots=True)
class State:
    """Where an episode stands.

    Attributes:
        plan: the level.
        actions: taken so far, the unreadable ones too.
    """

    plan: Plan
    actions: tuple[str, ...]
    simulator: Simulator = field(repr=False, compare=False)


def begin(plan: Plan) -> State:
    """The first state of a level."""
    return State(plan, (), Simulator(plan))


def _look(level: Level) -> tuple[Any, ...]:
    """What an action can change: the agent, its hands, and what is before it."""
    front = level.grid.get(*level.front_pos)
    place = tuple(int(number) for number in np.asarray(level.agent_pos))
    return place, int(level.agent_dir), level.carrying, front, bool(getattr(front, "is_open", False))


def _outcome(action: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> str:
    if before == after:
        return BLOCKED if action == "go forward" else NOTHING
    return _OUTCOMES[action]
