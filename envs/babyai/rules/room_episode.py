"""Episodes: small states, and the simulator that is brought to the point of a state."""

from dataclasses import dataclass, field

from coevo.envs.babyai.babyai_contents import ACTIONS
from coevo.envs.babyai.babyai_language import View
from coevo.envs.babyai.moves import Rewindable, move
from coevo.envs.babyai.rules.room import Room, holds
from coevo.envs.babyai.rules.rules_tasks import RulesTaskPlan
from coevo.envs.babyai.rules.tower_world import outcome
from coevo.envs.base import Step


class RoomSimulator(Rewindable[str]):
    """Simulator of one room, for one thread at a time."""

    def __init__(self, plan: RulesTaskPlan) -> None:
        self._plan = plan
        super().__init__()

    def room(self, actions: tuple[str, ...]) -> Room:
        """Room after these actions."""
        self._go(actions)
        return self._room

    def step(self, state: "RoomPoint", action: str) -> "Step[RoomPoint]":
        """Take one more action after those of the state. The first thing that is tried on the door ends the episode."""
        self._go(state.actions)
        feedback = self._next(action)
        opened, tried = self._room.bolt.is_open, self._room.bolt.tried
        over = len(state.actions) + 1 >= self._plan.steps
        return Step(
            state=RoomPoint(state.plan, (*state.actions, action), self),
            observation=View(self._room).text(),
            feedback=feedback,
            reward=float(opened),
            done=opened or tried or over,
            success=opened,
            valid=action in ACTIONS,
            truncated=over and not opened and not tried,
            progress=1.0 if opened else 0.5 * self._ready,
        )

    def _restart(self) -> None:
        self._room = Room(self._plan)
        self._ready = False

    def _take(self, action: str) -> str:
        _, _, feedback = move(self._room, action)
        self._ready = self._ready or self._plan.attribute in (holds(self._room) or ())
        bolt = self._room.bolt
        return outcome(bolt.is_open, self._plan.attribute) if bolt.is_open or bolt.tried else feedback


@dataclass(frozen=True, slots=True)
class RoomPoint:
    """A point of an episode.

    Attributes:
        plan: the task.
        actions: actions so far, including unreadable ones.
    """

    plan: RulesTaskPlan
    actions: tuple[str, ...]
    simulator: RoomSimulator = field(repr=False, compare=False)

    def room(self) -> Room:
        """Room at this point."""
        return self.simulator.room(self.actions)

    def observation(self) -> str:
        """Observation at this point."""
        return View(self.room()).text()


def begin(plan: RulesTaskPlan) -> RoomPoint:
    """First state of a task."""
    return RoomPoint(plan, (), RoomSimulator(plan))
