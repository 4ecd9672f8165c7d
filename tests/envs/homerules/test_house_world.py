import pytest

from coevo.envs.homerules.house_world import (
    HOUSES,
    LEVELS,
    OTHER_HOUSES,
    Goal,
    HouseView,
    read_instruction,
    read_observation,
)
from coevo.utilities.errors import CoevoError


@pytest.mark.parametrize(
    ("goal", "text"),
    [
        (Goal("lotus", "heat", "mug", "counter"), "house lotus . task heat mug to counter"),
        (Goal("lotus", "look", "mug", ""), "house lotus . task look mug"),
    ],
)
def test_an_instruction_is_read_back(goal, text):
    assert goal.instruction() == text
    assert read_instruction(text) == goal


@pytest.mark.parametrize(
    ("view", "text"),
    [
        (HouseView("hall", "", "", (), ""), "at hall hold nothing . seen nothing"),
        (HouseView("safe", "mug", "", ("drawer", "safe"), ""), "at safe hold mug . seen drawer safe"),
        (HouseView("oven", "mug", "hot", ("safe",), ""), "at oven hold mug hot . seen safe"),
        (HouseView("desk", "", "", ("safe",), "safe"), "at desk hold nothing . seen safe . found safe"),
    ],
)
def test_an_observation_is_read_back(view, text):
    assert view.text() == text
    assert read_observation(text) == view


@pytest.mark.parametrize("text", ["", "you are in a room", "house lotus . recite mug heat"])
def test_another_environments_text_is_refused(text):
    with pytest.raises(CoevoError, match="homerules"):
        read_instruction(text)
    with pytest.raises(CoevoError, match="homerules"):
        read_observation(text)


def test_the_demo_has_ten_and_three_facts_a_house():
    level = LEVELS[1]
    assert (len(level.limits), len(level.places), len(level.objects)) == (4, 4, 10)
    assert {family: len(tools) for family, tools in level.appliances.items()} == {"heat": 3, "cool": 3, "clean": 3}
    assert level.limits == {"put": 4, "heat": 5, "cool": 5, "clean": 5}
    assert LEVELS[2].limits == dict.fromkeys(("put", "heat", "cool", "clean", "puttwo", "look"), 10)


@pytest.mark.parametrize("level", [1, 2])
def test_names_mean_one_thing_each(level):
    tools = [tool for group in LEVELS[level].appliances.values() for tool in group]
    names = [*HOUSES, *OTHER_HOUSES, *LEVELS[level].places, *LEVELS[level].objects, *LEVELS[level].limits, *tools]
    assert len(names) == len(set(names))
    assert len(HOUSES) == len(OTHER_HOUSES) == 16
