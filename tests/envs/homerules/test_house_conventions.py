from collections import Counter

import pytest

from coevo.envs.homerules.house_conventions import facts, fresh
from coevo.envs.homerules.house_world import HOUSES, LEVELS
from coevo.records.draws import generator, key


def test_facts_are_a_function_of_the_house_and_world():
    facts.cache_clear()
    first = facts(1, "train/0", "lotus")
    facts.cache_clear()
    assert facts(1, "train/0", "lotus") == first
    assert len({str(facts(1, world, house)) for world in ("train/0", "train/1") for house in HOUSES}) == 32


def test_known_facts_never_move():
    # Frozen values: a recorded task must play the same on every machine and in every later version.
    lotus = facts(1, "train/0", "lotus")
    assert [lotus.storage[thing] for thing in ("mug", "plate", "bowl")] == ["drawer", "drawer", "cabinet"]
    assert dict(lotus.appliance) == {"heat": "oven", "cool": "cooler", "clean": "dishwasher"}


def test_lessons_are_the_scope_and_what_feedback_says():
    lotus = facts(1, "train/0", "lotus")
    tool = lotus.appliance["heat"]
    assert lotus.lesson("mug") == f"lotus mug in {lotus.storage['mug']}"
    assert lotus.lesson("heat") == f"lotus heat with {tool}"
    others = [other for other in ("microwave", "stove", "oven") if other != tool]
    assert lotus.warnings("heat") == [f"lotus heat not {other}" for other in others]
    assert len(lotus.subjects) == 13


def test_every_place_and_appliance_is_equally_likely():
    houses = [facts(1, f"uniform/{world}", "lotus") for world in range(1200)]
    places = Counter(house.storage["mug"] for house in houses)
    tools = Counter(house.appliance["cool"] for house in houses)
    # Four standard deviations of a binomial count of 1200 draws: 60 around 300, 65 around 400.
    assert all(abs(places[place] - 300) < 60 for place in LEVELS[1].places)
    assert all(abs(tools[tool] - 400) < 65 for tool in LEVELS[1].appliances["cool"])


@pytest.mark.parametrize("level", [1, 2])
def test_contrary_facts_are_all_false(level):
    truth = facts(level, "train/0", "maple")
    lies = truth.contrary(generator(key("lies")))
    assert lies.subjects == truth.subjects
    assert not {truth.lesson(subject) for subject in truth.subjects} & {lies.lesson(name) for name in lies.subjects}
    assert all(lies.appliance[family] in LEVELS[level].appliances[family] for family in lies.appliance)


def test_fresh_worlds_cannot_be_a_world_that_is_trained_or_evaluated_in():
    assert fresh(key(1)) != fresh(key(2))
    assert fresh(key(1)).startswith("fresh/")
