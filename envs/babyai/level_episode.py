"""Episodes: small states that identify a point of an episode, and the simulator that is brought to that point.

A state is its level and the actions so far. The states of an episode share one simulator of minigrid; if it is at
another point than the requested state, it continues, or restarts and repeats the actions.
"""

from dataclasses import dataclass, field

from coevo.envs.babyai.babyai_contents import ACTIONS
from coevo.envs.babyai.babyai_language import View
from coevo.envs.babyai.bot import Bot
from coevo.envs.babyai.level import Level
from coevo.envs.babyai.level_plan import Plan
from coevo.envs.babyai.moves import Rewindable, move
from coevo.envs.base import Step
from coevo.records.demonstration import Answer


class LevelSimulator(Rewindable[tuple[float, str]]):
    """Simulator of one level, for one thread at a time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._guided = False
        super().__init__()

    @property
    def mission(self) -> str:
        """Instruction of the level."""
        return str(self._level.mission)

    def view(self, actions: tuple[str, ...]) -> str:
        """Observation after these actions."""
        self._go(actions)
        return View(self._level).text()

    def advice(self, actions: tuple[str, ...]) -> Answer:
        """Bot's advice after these actions. Raises ``CoevoError`` if it has none."""
        if not self._guided:
            self._guided = True
            self._taken = ()
            self._restart()
        self._go(actions)
        assert self._bot is not None
        return self._bot.answer()

    def step(self, state: "LevelPoint", action: str) -> "Step[LevelPoint]":
        """Take one more action after those of the state."""
        self._go(state.actions)
        reward, feedback = self._next(action)
        later = LevelPoint(state.plan, (*state.actions, action), self)
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
        self._reached = 0.0

    def _take(self, action: str) -> tuple[float, str]:
        """Reward and outcome of the next action; an unknown one passes the time."""
        code, reward, feedback = move(self._level, action)
        self._reached = 1.0 if reward > 0 else max(self._reached, 0.5 * self._level.task.halfway())
        if self._bot is not None and reward == 0:
            self._bot.watch(code)
        return reward, feedback


@dataclass(frozen=True, slots=True)
class LevelPoint:
    """A point of an episode.

    Attributes:
        plan: the level.
        actions: actions so far, including unreadable ones.
    """

    plan: Plan
    actions: tuple[str, ...]
    simulator: LevelSimulator = field(repr=False, compare=False)


def begin(plan: Plan) -> LevelPoint:
    """First state of a level."""
    return LevelPoint(plan, (), LevelSimulator(plan))
