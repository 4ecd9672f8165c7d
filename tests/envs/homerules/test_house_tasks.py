from collections import Counter
from itertools import product

import pytest

from coevo.envs.homerules import HomeRules
from coevo.envs.homerules.house_tasks import goal_of, held_out
from coevo.envs.homerules.house_world import HOUSES, LEVELS, OTHER_HOUSES, TARGETS, Goal
from coevo.records.draws import key
from coevo.records.entry import entry_id

TASKS = 192


@pytest.mark.parametrize("level", [1, 2])
def test_no_training_task_is_in_any_panel(level):
    env = HomeRules(level)
    trained = {goal_of(task) for task in env.sample(20_000, key("all"))}
    targets = {family: TARGETS if family != "look" else ("",) for family in LEVELS[level].limits}
    space = {
        Goal(house, family, thing, target)
        for house, family, thing in product(HOUSES, LEVELS[level].limits, LEVELS[level].objects)
        for target in targets[family]
    }
    held = {goal for goal in space if held_out(goal, level)}
    assert trained <= space - held
    assert len(trained) > 0.9 * len(space - held)
    for name in ("seen-houses", "no-bank", "other-facts"):
        assert {goal_of(task) for task in env.panel(name, TASKS).tasks} <= held
    assert 0.2 < len(held) / len(space) < 0.3


def test_panels_are_of_the_worlds_and_houses_that_they_promise():
    env, worlds = HomeRules(world=5), {}
    for name in env.panels:
        tasks = env.panel(name, TASKS).tasks
        (worlds[name],) = {task.data["world"] for task in tasks}
        assert {task.split for task in tasks} == {name}
        assert all(task.instruction == goal_of(task).instruction() for task in tasks)
        assert {task.scope for task in tasks} <= set(OTHER_HOUSES if name == "other-houses" else HOUSES)
        assert Counter(task.kind for task in tasks) == dict.fromkeys(("put", "heat", "cool", "clean"), TASKS // 4)
        assert len({task.id for task in tasks}) == TASKS
    assert worlds["seen-houses"] == worlds["no-bank"] == env.sample(1, key(0))[0].data["world"]
    assert len(set(worlds.values())) == 3
    seen, bare = (env.panel(name, TASKS) for name in ("seen-houses", "no-bank"))
    assert [task.id for task in seen.tasks] == [task.id for task in bare.tasks]


def test_families_are_equally_likely_in_training():
    families = Counter(task.kind for task in HomeRules().sample(4000, key("families")))
    # Four standard deviations of a binomial count of 4000 draws with chance 1/4: 110.
    assert all(abs(families[family] - 1000) < 110 for family in LEVELS[1].limits)


def test_fewer_houses_train_in_fewer_houses():
    env = HomeRules(houses=2)
    assert {task.scope for task in env.sample(200, key(0))} == set(HOUSES[:2])
    assert {task.scope for task in env.panel("seen-houses", 40).tasks} == set(HOUSES[:2])
    assert {entry.scope for entry in env.panel_bank("other-houses")} == set(OTHER_HOUSES[:2])


def test_the_bank_of_a_panel_is_the_whole_truth_of_its_world():
    env = HomeRules()
    assert env.panel_bank("seen-houses") is None
    assert env.panel_bank("no-bank") == []
    for name in ("other-facts", "other-houses"):
        bank = env.panel_bank(name)
        assert len({entry.id for entry in bank}) == len(bank) == 16 * 13
        for task in env.panel(name, TASKS).tasks:
            fact = next(entry for entry in bank if entry.keywords == f"{task.scope} {task.data['object']}")
            state, _ = env.start(task)
            (step,) = env.step([state], [fact.example])
            assert f"{task.scope} {step.feedback}" == fact.strategy
            assert (fact.scope, fact.split, fact.created, fact.active) == (task.scope, "train", 0, True)
            assert fact.id == entry_id(task.scope, fact.strategy)
