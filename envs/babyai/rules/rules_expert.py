"""An expert that takes the thing that the notes name, and guesses without one; it knows the way from the room."""

from collections.abc import Sequence

from coevo.envs.babyai.babyai_contents import ThingName
from coevo.envs.babyai.babyai_language import View
from coevo.envs.babyai.rules.room import Room, holds, route
from coevo.envs.babyai.rules.room_episode import RoomPoint
from coevo.envs.babyai.rules.tower_world import CUSTOMS, DOOR, note
from coevo.records.demonstration import Answer
from coevo.records.draws import Key, seed_of
from coevo.utilities.errors import CoevoError


def answer(state: RoomPoint, lessons: Sequence[str], draw: Key) -> Answer:
    """Next thought and action; the thought repeats the note that it relies on, and names its aim and where that is.

    Raises:
        CoevoError: nothing leads on, for example after a box was opened.
    """
    room, names = state.room(), state.plan.names
    told = _told(state.plan.tower, lessons, names)
    held = holds(room)
    if held in names and (told is None or told in held):
        return _act(room, [DOOR], "toggle", _thought(state.plan.tower, told), draw)
    if held is not None:
        return _put_down(room)
    aims = [name for name in names if told is None or told in name]
    return _act(room, aims, "pick up", _thought(state.plan.tower, told), draw)


def _told(tower: str, lessons: Sequence[str], names: tuple[ThingName, ThingName]) -> str | None:
    """Attribute in the first note about the tower that one of the two things has; words after ``not`` do not count."""
    notes = [lesson.lower().partition(" not ")[0].split() for lesson in lessons]
    attributes = [word for words in notes if tower in words for word in words if word in CUSTOMS]
    return next((word for word in attributes if any(word in name for name in names)), None)


def _thought(tower: str, told: str | None) -> str:
    return "guess" if told is None else note(tower, told)


def _act(room: Room, aims: list[ThingName], action: str, thought: str, draw: Key) -> Answer:
    """Step towards the nearest aim, any of those that are equally near, or ``action`` in front of it."""
    cells = [cell for cell in room.grid.grid if cell is not None and (cell.color, cell.type) in aims]
    routes = [(cell, found) for cell in cells if (found := route(room, cell)) is not None]
    if not routes:
        raise CoevoError("the expert of babyai-rules finds no way: let it play from the beginning")
    nearest = min(found.length for _, found in routes)
    equal = [(cell, found) for cell, found in routes if found.length == nearest]
    cell, found = equal[seed_of(draw) % len(equal)]
    return Answer(f"{thought} . {View(room).aim(cell.color, cell.type)}", found.first or action)


def _put_down(room: Room) -> Answer:
    """Drop a thing that the notes speak against, where there is space."""
    return Answer("", "drop" if room.grid.get(*room.front_pos) is None else "turn left")
