"""What exists in BabyAI: kinds of tasks, colours, things, actions, which pairs are held out, and every word of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

NAME = "babyai"
ROOM_SIZE = 8
"""Cells along a side of a room, its walls included."""
COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
THINGS = ("key", "ball", "box")
ACTIONS = ("turn left", "turn right", "go forward", "pick up", "drop", "toggle")
NOTHING = "nothing happens"
BLOCKED, UNSEEN = "blocked", "unseen"
OUTCOMES = ("turned", "moved", BLOCKED, "taken", "dropped", "opened", NOTHING)
"""What an action can lead to, in words."""
_VIEW_AHEAD = 6
"""Cells that the agent sees ahead of itself; it sees three to either side."""
_INSTRUCTIONS = "go to pick up put open next a the then after you , door"
_OBSERVATIONS = "You see carry a an wall locked open door step steps left right forward and"


class Name(NamedTuple):
    """What an instruction calls a thing."""

    colour: str
    thing: str


HELD_OUT = frozenset(
    {Name("yellow", "box"), Name("red", "key"), Name("red", "door"), Name("green", "ball"), Name("grey", "door")}
)
"""What instructions of the held-out panel name, and no others."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of task.

    Attributes:
        steps: actions after which an episode is cut.
        named: things that its instruction names, besides a door.
        rooms: side by side; the door between two is locked.
    """

    steps: int
    named: int
    rooms: int = 1


KINDS: Mapping[str, Kind] = {
    "goto": Kind(64, 1),
    "pickup": Kind(64, 1),
    "open": Kind(128, 0, 2),
    "pick_up_seq_go_to": Kind(128, 2),
    "putnext": Kind(128, 2),
}


def names(things: tuple[str, ...], held_out: bool) -> list[Name]:
    """Every name of these things that instructions of a split may hold."""
    every = [Name(colour, thing) for colour in COLOURS for thing in things]
    return [name for name in every if (name in HELD_OUT) == held_out]


def words() -> tuple[str, ...]:
    """Every word that a task, observation, outcome, thought or action can hold, sorted."""
    numbers = map(str, range(1, _VIEW_AHEAD + 1))
    said = " ".join((_INSTRUCTIONS, _OBSERVATIONS, UNSEEN, *OUTCOMES, *ACTIONS, *COLOURS, *THINGS, *numbers))
    return tuple(sorted({*said.split()}))
