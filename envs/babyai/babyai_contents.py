"""Contents of BabyAI: kinds of tasks, colours, things, actions, held-out pairs, and the whole vocabulary."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

NAME = "babyai"
ROOM_SIZE = 8
"""Cells along a side of a room, including its walls."""
COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
THINGS = ("key", "ball", "box")
ACTIONS = ("turn left", "turn right", "go forward", "pick up", "drop", "toggle")
NOTHING = "nothing happens"
BLOCKED, UNSEEN = "blocked", "unseen"
GUIDE = """An action is one of these lines, in exactly this form:
turn left: turn to your left.
turn right: turn to your right.
go forward: move one step; you cannot enter a cell with a wall, a thing or a closed door.
pick up: take the thing in the cell in front of you; you can carry one.
drop: put down the thing that you carry, in the free cell in front of you.
toggle: open or close the door in front of you; a locked door takes the key of its colour.
A box that you toggle is gone."""
OUTCOMES = ("turned", "moved", BLOCKED, "taken", "dropped", "opened", NOTHING)
"""Outcomes of an action, in words."""
_VIEW_AHEAD = 6
"""Cells that the agent sees ahead of itself; it sees three to each side."""
_INSTRUCTIONS = "go to pick up put open next a the then after you , door"
_OBSERVATIONS = "You see carry a an wall locked open door step steps left right forward and"


class ThingName(NamedTuple):
    """Name of a thing in an instruction."""

    colour: str
    thing: str


HELD_OUT = frozenset(
    {
        ThingName("yellow", "box"),
        ThingName("red", "key"),
        ThingName("red", "door"),
        ThingName("green", "ball"),
        ThingName("grey", "door"),
    }
)
"""Names that occur in instructions of the held-out panel only."""


@dataclass(frozen=True, slots=True)
class TaskKind:
    """A kind of task.

    Attributes:
        steps: actions after which an episode is cut.
        named: number of things that its instruction names, without a door.
        rooms: number of rooms side by side; the door between two is locked.
    """

    steps: int
    named: int
    rooms: int = 1


KINDS: Mapping[str, TaskKind] = {
    "goto": TaskKind(64, 1),
    "pickup": TaskKind(64, 1),
    "open": TaskKind(128, 0, 2),
    "pick_up_seq_go_to": TaskKind(128, 2),
    "putnext": TaskKind(128, 2),
}


def names(things: tuple[str, ...], held_out: bool) -> list[ThingName]:
    """Names of these things that instructions of a split may contain."""
    every = [ThingName(colour, thing) for colour in COLOURS for thing in things]
    return [name for name in every if (name in HELD_OUT) == held_out]


def words() -> tuple[str, ...]:
    """Every word that a task, observation, outcome, thought or action can contain, sorted."""
    numbers = map(str, range(1, _VIEW_AHEAD + 1))
    said = " ".join((_INSTRUCTIONS, _OBSERVATIONS, UNSEEN, *OUTCOMES, *ACTIONS, *COLOURS, *THINGS, *numbers))
    return tuple(sorted({*said.split()}))
