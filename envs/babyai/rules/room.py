"""The room of a task in minigrid: five by three cells, two things, and a door with a bolt."""

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Ball, Box, Door, Key, WorldObj
from minigrid.minigrid_env import MiniGridEnv

from coevo.envs.babyai.babyai_contents import ThingName
from coevo.envs.babyai.rules.rules_tasks import RulesTaskPlan
from coevo.envs.babyai.rules.tower_world import DOOR

WIDTH, HEIGHT = 7, 5
"""Cells along the sides, including walls."""
_START, _UP = (3, 3), 3
_MAKE = {"key": Key, "ball": Ball, "box": Box}


class Bolt(Door):  # type: ignore[misc]
    """A door that opens for what has an attribute; ``tried`` is True once anything else was tried."""

    def __init__(self, attribute: str) -> None:
        super().__init__(DOOR.colour, is_locked=True)
        self._attribute = attribute
        self.tried = False

    def toggle(self, env: Any, pos: tuple[int, int]) -> bool:
        """Open for the right thing. Empty hands change nothing."""
        held = env.carrying
        if held is None:
            return False
        self.is_open = self._attribute in (held.color, held.type)
        self.is_locked, self.tried = not self.is_open, not self.is_open
        return self.is_open


class Room(MiniGridEnv):  # type: ignore[misc]
    """The room of a plan, at its beginning. ``carrying`` and the rest are minigrid's."""

    def __init__(self, plan: RulesTaskPlan) -> None:
        self.plan = plan
        instruction = plan.instruction()
        space = MissionSpace(mission_func=lambda: instruction)
        super().__init__(space, width=WIDTH, height=HEIGHT, max_steps=plan.steps)
        self.reset(seed=0)

    def gen_obs(self) -> dict[str, Any]:
        """Empty: observations are described in words, on request."""
        return {}

    def _gen_grid(self, width: int, height: int) -> None:
        plan, (column, row) = self.plan, _START
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        self.bolt = Bolt(plan.attribute)
        self.put_obj(self.bolt, plan.door, 0)
        for name, side in zip(plan.names, (-1, 1), strict=True):
            self.put_obj(_MAKE[name.thing](name.colour), column + side * plan.apart, row - plan.ahead)
        self.agent_pos, self.agent_dir = _START, _UP


class Route(NamedTuple):
    """Shortest way until the agent stands in front of a thing: number of actions, and the first one, empty if there."""

    length: int
    first: str


def route(room: Room, thing: WorldObj) -> Route | None:
    """Route to a thing or door; None if there is none."""
    start = (*map(int, room.agent_pos), int(room.agent_dir))
    found, waiting = {start: Route(0, "")}, deque([start])
    while waiting:
        place = waiting.popleft()
        if room.grid.get(*_front(place)) is thing:
            return found[place]
        for action, after in _after(room, place):
            if after not in found:
                found[after] = Route(found[place].length + 1, found[place].first or action)
                waiting.append(after)
    return None


def holds(room: Room) -> ThingName | None:
    """Name of the carried thing; None for empty hands."""
    held = room.carrying
    return None if held is None else ThingName(held.color, held.type)


_Place = tuple[int, ...]
_STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Column and row of a step in each of minigrid's directions."""


def _front(place: _Place) -> tuple[int, int]:
    column, row, direction = place
    return column + _STEPS[direction][0], row + _STEPS[direction][1]


def _after(room: Room, place: _Place) -> Iterator[tuple[str, _Place]]:
    column, row, direction = place
    yield "turn left", (column, row, (direction - 1) % 4)
    yield "turn right", (column, row, (direction + 1) % 4)
    if room.grid.get(*_front(place)) is None:
        yield "go forward", (*_front(place), direction)
