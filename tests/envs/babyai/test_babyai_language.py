"""The words of the renderer, against scenes put together by hand."""

import pytest
from minigrid.core.world_object import Ball, Box, Door, Key

from coevo.envs.babyai.babyai_contents import ThingName
from coevo.envs.babyai.babyai_language import Sight, View
from coevo.envs.babyai.level import Level
from coevo.envs.babyai.level_plan import Plan

UP, RIGHT, DOWN, LEFT = 3, 0, 1, 2


def scene(at, facing, things=(), kind="goto", carried=None):
    """A level without furniture but ``things`` by place; rooms are 8 cells wide, walls included, y grows downwards."""
    level = Level(Plan(kind, 1, 0, 64, False))
    for x in range(1, level.width - 1):
        for y in range(1, 7):
            if x != 7:
                level.grid.set(x, y, None)
    for place, thing in dict(things).items():
        level.put_obj(thing, *place)
    level.agent_pos, level.agent_dir, level.carrying = at, facing, carried
    return level


def said(*arguments, **options):
    return View(scene(*arguments, **options)).text().split(" . ")


def test_walls_come_forward_left_right_and_only_as_far_as_can_be_seen():
    assert said((1, 1), UP) == ["You see a wall 1 step forward", "You see a wall 1 step left"]
    assert said((3, 3), UP) == ["You see a wall 3 steps forward", "You see a wall 3 steps left"]
    assert said((4, 6), UP) == ["You see a wall 6 steps forward", "You see a wall 3 steps right"]
    assert said((4, 4), LEFT) == ["You see a wall 4 steps forward", "You see a wall 3 steps left"]


@pytest.mark.parametrize(
    ("place", "facing", "where"),
    [
        ((3, 1), UP, "3 steps forward"), ((3, 3), UP, "1 step forward"),
        ((1, 4), UP, "2 steps left"), ((4, 4), UP, "1 step right"),
        ((5, 1), UP, "2 steps right and 3 steps forward"), ((2, 3), UP, "1 step left and 1 step forward"),
        ((5, 1), RIGHT, "3 steps left and 2 steps forward"), ((5, 5), RIGHT, "1 step right and 2 steps forward"),
        ((2, 6), DOWN, "1 step right and 2 steps forward"), ((1, 1), LEFT, "3 steps right and 2 steps forward"),
    ],
)  # fmt: skip
def test_a_thing_is_so_many_steps_away_as_the_agent_faces(place, facing, where):
    assert said((3, 4), facing, {place: Ball("red")})[-1] == f"You see a red ball {where}"


def test_what_is_behind_or_too_far_to_the_side_is_not_seen():
    behind, beside = {(3, 5): Ball("red")}, {(5, 2): Box("red")}
    assert not any("ball" in line for line in said((3, 4), UP, behind))
    assert not any("box" in line for line in said((1, 4), UP, beside))
    assert any("box" in line for line in said((2, 4), UP, beside))


def test_what_is_carried_comes_first_then_walls_then_things_from_left_to_right_and_from_far_to_near():
    things = {(2, 3): Key("grey"), (5, 2): Box("green"), (5, 3): Ball("blue"), (4, 2): Key("purple")}
    assert said((4, 4), UP, things, carried=Key("red")) == [
        "You carry a red key",
        "You see a wall 3 steps right",
        "You see a grey key 2 steps left and 1 step forward",
        "You see a purple key 2 steps forward",
        "You see a green box 1 step right and 2 steps forward",
        "You see a blue ball 1 step right and 1 step forward",
    ]


def test_a_thing_hides_the_wall_behind_it():
    assert said((1, 4), UP, {(1, 2): Ball("red")}) == [
        "You see a wall 1 step left",
        "You see a red ball 2 steps forward",
    ]
    assert said((1, 4), UP, {(2, 2): Ball("red")})[0] == "You see a wall 4 steps forward"


@pytest.mark.parametrize(("state", "what"), [("locked", "a locked"), ("closed", "a closed"), ("open", "an open")])
def test_a_door_is_seen_with_its_state(state, what):
    door = Door("purple", is_open=state == "open", is_locked=state == "locked")
    things = {(7, 2): door, (9, 2): Key("red")}
    lines = said((5, 5), UP, things, kind="open")
    assert lines[:1] == ["You see a wall 5 steps forward"] * 1
    assert lines[1] == "You see a wall 2 steps right"
    assert lines[2] == f"You see {what} purple door 2 steps right and 3 steps forward"


def test_only_an_open_door_lets_the_next_room_be_seen():
    for state in (True, False):
        things = {(7, 2): Door("purple", is_open=state), (9, 2): Key("red")}
        lines = said((5, 2), RIGHT, things, kind="open")
        assert any("red key 4 steps forward" in line for line in lines) is state


def test_thoughts_name_the_nearest_thing_that_is_meant():
    view = View(scene((3, 4), UP, {(3, 1): Ball("red"), (4, 4): Ball("blue"), (5, 1): Box("red")}))
    assert view.aim("red", "ball") == "red ball 3 steps forward"
    assert view.aim(None, "ball") == "blue ball 1 step right"
    assert view.aim("red", "box") == "red box 2 steps right and 3 steps forward"
    assert view.aim("grey", "box") == "grey box unseen"
    assert view.aim(None, "door") == "door unseen"


def test_a_sight_in_words():
    door = Sight(ThingName("purple", "door"), "locked", 2, 3)
    assert door.text() == "You see a locked purple door 2 steps right and 3 steps forward"
    assert door.distance == 5
