"""A world that drifts: one house after another changes its facts, and tasks and panels follow."""

import json
from dataclasses import replace

import pytest

from coevo.configs.env import HomeRulesConfig
from coevo.envs.homerules import HomeRules
from coevo.envs.homerules.house_conventions import changes_before, facts
from coevo.envs.homerules.house_tasks import facts_of
from coevo.envs.homerules.house_world import HOUSES, OTHER_HOUSES
from coevo.envs.registry import make
from coevo.records.draws import key

DRIFT = 50


@pytest.mark.parametrize(
    ("iteration", "expected"),
    [(0, (0, 0, 0)), (50, (0, 0, 0)), (51, (1, 0, 0)), (101, (1, 1, 0)), (151, (1, 1, 1)), (201, (2, 1, 1))],
)
def test_one_house_changes_after_every_period_in_turn(iteration, expected):
    assert tuple(changes_before(iteration, DRIFT, "abc").values()) == expected


@pytest.mark.parametrize("level", [1, 2])
def test_a_change_replaces_every_fact_of_its_house(level):
    before, after, later = (facts(level, "train/0", "lotus", number) for number in range(3))
    for old, new in ((before, after), (after, later)):
        assert not {old.lesson(name) for name in old.subjects} & {new.lesson(name) for name in new.subjects}
    facts.cache_clear()
    assert facts(level, "train/0", "lotus", 2) == later


def test_a_world_that_does_not_drift_is_the_same_at_every_iteration():
    env = HomeRules()
    assert env.at(3000) is env
    assert "drift" not in HomeRulesConfig().model_dump(mode="json")


def test_tasks_say_how_often_their_house_has_changed_and_play_so_anywhere():
    env = make(HomeRulesConfig(drift=DRIFT))
    old, new = env.at(DRIFT).sample(200, key(0)), env.at(DRIFT + 1).sample(200, key(0))
    assert old == HomeRules().sample(200, key(0))
    assert [task.instruction for task in old] == [task.instruction for task in new]
    assert {a.scope for a, b in zip(old, new, strict=True) if a.id != b.id} == {HOUSES[0]}
    task = next(task for task in new if task.scope == HOUSES[0])
    stored = replace(task, data=json.loads(json.dumps(dict(task.data))))
    assert facts_of(stored) == facts(1, "train/0", HOUSES[0], 1)
    assert HomeRules().start(stored) == env.start(task)


def test_panels_follow_the_facts_in_force_and_show_it_in_their_hash():
    env = HomeRules(drift=DRIFT)
    for name, follows in [("seen-houses", True), ("no-bank", True), ("other-facts", False), ("other-houses", False)]:
        start, end, later = (env.at(iteration).panel(name, 96) for iteration in (0, DRIFT, DRIFT + 1))
        assert start.hash == end.hash == HomeRules().panel(name, 96).hash
        assert (later.hash != end.hash) == follows
        changed = {b.scope for a, b in zip(end.tasks, later.tasks, strict=True) if a.id != b.id}
        assert changed == ({HOUSES[0]} if follows else set())
    later = env.at(3000)
    assert not {task.id for task in later.sample(400, key(1))} & {task.id for task in later.panel("no-bank", 96).tasks}
    assert {entry.scope for entry in later.panel_bank("other-houses")} == set(OTHER_HOUSES)


def test_a_renewed_task_has_the_facts_in_force_and_stays_in_training():
    env, plain = HomeRules(drift=DRIFT), HomeRules()
    old, new = (env.at(iteration).sample(200, key(0)) for iteration in (DRIFT, DRIFT + 1))
    assert [env.at(DRIFT + 1).renewed(task) for task in old] == new
    assert [env.at(DRIFT).renewed(task) for task in new] == old
    assert all(plain.renewed(task) is task for task in old)
    held = env.panel("other-facts", 8).tasks
    assert [env.at(DRIFT + 1).renewed(task) for task in held] == list(held)
    panel = {task.id for task in env.at(3000).panel("seen-houses", 96).tasks}
    assert not {env.at(3000).renewed(task).id for task in old} & panel
