"""Mission of each kind of task, and the things around it (MixedTrainLocal of BabyAI-Text).

A mission is written into a level that has walls and is otherwise empty. Unplayable missions are rejected by minigrid's
exceptions, and drawn again. Draws use minigrid's ``_rand_`` methods, which its own levels draw missions with: it has no
public ones.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from minigrid.envs.babyai.core.verifier import (
    AfterInstr,
    BeforeInstr,
    GoToInstr,
    ObjDesc,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
)

from coevo.envs.babyai.babyai_contents import KINDS, THINGS, ThingName, names
from coevo.envs.babyai.level_plan import Plan

LevelState = Any
"""A level of minigrid."""


class Mission(NamedTuple):
    """Verifier of an instruction, and a check that the first half of it is reached."""

    instruction: Any
    halfway: Callable[[], bool]


def write(level: LevelState, plan: Plan) -> Mission:
    """Put agent and things into a level, and draw its mission."""
    mission = _open(level, plan) if plan.kind == "open" else _ONE_ROOM[plan.kind](level, _furnish(level, plan))
    level.check_objs_reachable()
    return mission


def _furnish(level: LevelState, plan: Plan) -> list[ThingName]:
    """Place the agent, the named things, each name once, and the distractors; return the names."""
    level.place_agent()
    named: list[ThingName] = level._rand_subset(names(THINGS, plan.held_out), KINDS[plan.kind].named)
    for name in named:
        level.add_object(0, 0, name.thing, name.colour)
    level.add_distractors(0, 0, num_distractors=plan.distractors, all_unique=False)
    return named


def _goto(level: LevelState, named: list[ThingName]) -> Mission:
    return Mission(GoToInstr(_description(named[0])), _never)


def _pickup(level: LevelState, named: list[ThingName]) -> Mission:
    return Mission(PickupInstr(_description(named[0])), _never)


def _pick_up_seq_go_to(level: LevelState, named: list[ThingName]) -> Mission:
    first, second = PickupInstr(_description(named[0])), GoToInstr(_description(named[1]))
    if level._rand_bool():
        before = BeforeInstr(first, second)
        return Mission(before, lambda: before.a_done == "success")
    after = AfterInstr(second, first)
    return Mission(after, lambda: after.b_done == "success")


def _putnext(level: LevelState, named: list[ThingName]) -> Mission:
    moved = _description(named[0])
    instruction = PutNextInstr(moved, _description(named[1]))
    return Mission(instruction, lambda: any(thing is level.carrying for thing in moved.obj_set))


def _open(level: LevelState, plan: Plan) -> Mission:
    """Two rooms and a locked door; the key, the distractors and the agent are on the near side."""
    far = level._rand_int(0, 2)
    near = 1 - far
    colour = level._rand_elem(names(("door",), plan.held_out)).colour
    level.add_door(far, 0, door_idx=2 * far, color=colour, locked=True)
    level.add_object(near, 0, "key", colour)
    level.add_distractors(near, 0, num_distractors=plan.distractors, all_unique=False)
    level.place_agent(near, 0)
    told = colour if plan.held_out or level._rand_bool() else None
    return Mission(OpenInstr(ObjDesc("door", told)), lambda: _holds(level, ThingName(colour, "key")))


def _holds(level: LevelState, name: ThingName) -> bool:
    held = level.carrying
    return held is not None and ThingName(held.color, held.type) == name


def _description(name: ThingName) -> Any:
    return ObjDesc(name.thing, name.colour)


def _never() -> bool:
    return False


_ONE_ROOM: Mapping[str, Callable[[LevelState, list[ThingName]], Mission]] = {
    "goto": _goto,
    "pickup": _pickup,
    "pick_up_seq_go_to": _pick_up_seq_go_to,
    "putnext": _putnext,
}
