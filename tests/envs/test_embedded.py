"""Tasks, panels and settings: promises that every embedded environment keeps."""

import json

import pytest

from coevo.configs.env import (
    BabyAIConfig,
    BabyAIRulesConfig,
    LifelongDbConfig,
    MineSweeperConfig,
    SearchQAConfig,
    SokobanConfig,
    WebShopConfig,
)
from coevo.configs.load.load import load_env
from coevo.envs.babyai import BabyAI
from coevo.envs.babyai.babyai_contents import KINDS
from coevo.envs.babyai.rules import BabyAIRules
from coevo.envs.homerules import HomeRules
from coevo.envs.lifelong.lifelong_db import LifelongDb
from coevo.envs.minesweeper import MineSweeper
from coevo.envs.registry import make
from coevo.envs.searchqa import SearchQA
from coevo.envs.sokoban import Sokoban
from coevo.envs.webshop import WebShop
from coevo.records.draws import key
from coevo.records.task import Task
from coevo.tasks.gates.environment_data import check_demonstrations, check_panel
from coevo.utilities.errors import CoevoError

MADE = {"homerules": HomeRules, "babyai": lambda: BabyAI(tuple(KINDS), 2), "babyai-rules": BabyAIRules}
MADE |= {"sokoban": Sokoban, "minesweeper": MineSweeper, "webshop": WebShop, "searchqa": SearchQA}
MADE |= {"lifelong-db": LifelongDb}
each = pytest.mark.parametrize("env", [made() for made in MADE.values()], ids=MADE)


@pytest.mark.parametrize(
    ("env", "name", "size", "known"),
    [
        (HomeRules(), "seen-houses", 192, "5f513c1d8d61"),
        (HomeRules(), "other-facts", 192, "2704fc1f392f"),
        (HomeRules(), "other-houses", 192, "d0709f541003"),
        (BabyAI(tuple(KINDS)), "held-out", 40, "351e2b0a7418"),
        (BabyAI(tuple(KINDS)), "new-rooms", 40, "18de1bde7a16"),
        (BabyAIRules(), "seen-towers", 40, "50fbbb908a08"),
        (BabyAIRules(), "other-facts", 40, "c73232c9f79e"),
        (Sokoban(), "held-out", 40, "1e041863628d"),
        (Sokoban(size=7, boxes=1), "more-boxes", 40, "e545e3d91655"),
        (MineSweeper(), "held-out", 40, "72cb2cf5eb4d"),
        (MineSweeper(), "two-more", 40, "66a6cd7ed2f8"),
        (WebShop(), "held-out", 40, "9a446f0446ec"),
        (WebShop(48, catalogue="makers"), "held-out", 40, "a3829f5723fd"),
        (MineSweeper(fields=8), "other-mines", 40, "57c9bcd5c9f0"),
        (LifelongDb(), "held-out", 40, "c9c4a444674f"),
        (LifelongDb(), "other-facts", 40, "26979db5917f"),
        (LifelongDb(level=3), "held-out", 40, "e85ee8e3e4bd"),
        (SearchQA(1), "held-out", 40, "f8431736b293"),
        (SearchQA(), "held-out", 40, "9c4da5a8dbee"),
        (SearchQA(), "other-facts", 40, "7e3cf4cdc894"),
    ],
)
def test_panels_never_change_unnoticed(env, name, size, known):
    # A change here is a new version of the environment: raise its ``version``.
    panel = env.panel(name, size)
    assert panel.hash[:12] == known
    assert env.panel(name, size // 4).tasks == panel.tasks[: size // 4], "a smaller panel is the beginning of a larger"


@each
def test_tasks_are_a_function_of_the_key(env):
    drawn = env.sample(16, key(1, "tasks"))
    assert drawn == MADE[env.name]().sample(16, key(1, "tasks")) != env.sample(16, key(2, "tasks"))
    assert len({task.id for task in env.sample(100, key("distinct"))}) == 100


@each
def test_a_task_survives_json(env):
    (task,) = env.sample(1, key(0))
    data = json.loads(json.dumps(dict(task.data)))
    copy = Task(task.env, task.kind, task.instruction, task.scope, task.split, data)
    assert copy.id == task.id
    assert env.start(copy) == env.start(task)


@each
def test_demonstrations_are_a_function_of_the_key(env):
    drills = 3 if env.name == "homerules" else 0
    shown = env.demonstrations(6, drills, key("shown"))
    assert shown == MADE[env.name]().demonstrations(6, drills, key("shown"))
    assert shown != env.demonstrations(6, drills, key("other"))


@pytest.mark.parametrize(
    "env", [made() for name, made in MADE.items() if name != "homerules"], ids=lambda env: env.name
)
def test_what_it_hands_in_passes_the_gates(env, tmp_path):
    for name in env.panels:
        check_panel(env.panel(name, 20), tmp_path)
    check_demonstrations(env.demonstrations(5, 0, key("gate")), tmp_path)


@pytest.mark.parametrize(
    ("env", "actions"),
    [
        (HomeRules(), ["go safe", "go drawer", "take mug", "dance"]),
        (BabyAI(tuple(KINDS), 2), ["turn left", "go forward", "pick up", "toggle"]),
        (Sokoban(), ["up", "left", "down", "dance"]),
        (MineSweeper(), ["(1, 1)", "(2, 5)", "(6, 6)", "dance"]),
        (WebShop(), ["search[lamp]", "search[red shoe]", "click[x]", "dance"]),
        (LifelongDb(), ["Operation SELECT net FROM goods", "Operation DELETE FROM goods", "Answer 3", "dance"]),
        (SearchQA(), ["search[mayor]", "answer[x]", "answer[the]", "dance"]),
    ],
    ids=["homerules", "babyai", "sokoban", "minesweeper", "webshop", "lifelong-db", "searchqa"],
)
def test_a_batch_is_stepped_as_its_episodes_would_be_alone(env, actions):
    states = [env.start(task)[0] for task in env.sample(20, key("batch"))]
    before = repr(states)
    alone = [env.step([state], [action])[0] for state, action in zip(states, actions * 5, strict=True)]
    assert env.step(states, actions * 5) == alone
    assert env.step([states[0]] * 2, actions[:2])[0] == alone[0]
    assert repr(states) == before
    assert env.step([], []) == []
    with pytest.raises(ValueError, match="shorter"):
        env.step(states[:1], [])


@pytest.mark.parametrize(
    ("name", "settings", "config", "env"),
    [
        ("babyai", ["kinds=[open,putnext]", "distractors=1", "steps=9"],
         BabyAIConfig(kinds=("open", "putnext"), distractors=1, steps=9), BabyAI(["open", "putnext"], 1, 9)),
        ("babyai-rules", ["world=7", "towers=3", "steps=9"],
         BabyAIRulesConfig(world=7, towers=3, steps=9), BabyAIRules(7, 3, 9)),
        ("sokoban", ["size=7", "boxes=1"], SokobanConfig(size=7, boxes=1), Sokoban(7, 1)),
        ("searchqa", ["level=1", "realms=3"], SearchQAConfig(level=1, realms=3), SearchQA(1, realms=3)),
        ("webshop", ["products=300", "seed=4"], WebShopConfig(products=300, seed=4), WebShop(300, 4)),
        ("lifelong-db", ["level=2", "steps=4"], LifelongDbConfig(level=2, steps=4), LifelongDb(2, steps=4)),
        ("minesweeper", ["mines=4", "fields=3"], MineSweeperConfig(mines=4, fields=3), MineSweeper(mines=4, fields=3)),
    ],
)  # fmt: skip
def test_the_settings_of_a_recipe_reach_it(name, settings, config, env):
    assert load_env(name, settings) == config
    assert make(config).sample(4, key(0)) == env.sample(4, key(0))


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: HomeRules(level=3), "env.level = "),
        (lambda: HomeRules(world=-1), "env.world = "),
        (lambda: HomeRules(houses=17), "env.houses = "),
        (lambda: HomeRules(houses="many"), "env.houses = "),
        (lambda: HomeRules(drift=0), r"env\.drift = 0"),
        (lambda: HomeRules().panel_bank("nowhere"), "'nowhere'.*seen-houses, no-bank, other-facts, other-houses"),
        (lambda: HomeRules(houses=1).panel("seen-houses", 192), r"'seen-houses' has \d+ tasks with env.houses=1, not"),
        (lambda: BabyAI(kinds=()), "env.kinds = "),
        (lambda: BabyAI(kinds=("dance",)), "env.kinds = "),
        (lambda: BabyAI(distractors=11), "env.distractors = "),
        (lambda: BabyAI(distractors=-1), "env.distractors = "),
        (lambda: BabyAI(steps=0), "env.steps = "),
        (lambda: BabyAI().demonstrations(1, 16, key(0)), r"set warmstart\.drills=0"),
        (lambda: BabyAIRules(towers=33), r"env\.towers = 33"),
        (lambda: BabyAIRules().panel("no-bank", 10**6), r"'no-bank' has \d+ tasks with env\.towers=16.*request fewer"),
        (lambda: BabyAIRules().demonstrations(1, 2, key(0)), r"set warmstart\.drills=0"),
        (lambda: BabyAIRules().expert(None, key(0)), "use advise"),
        (lambda: Sokoban(boxes=4), r"env\.boxes = 4"),
        (lambda: Sokoban().demonstrations(1, 2, key(0)), r"set warmstart\.drills=0"),
        (lambda: Sokoban().expert(None, key(0)), "use advise"),
        (lambda: SearchQA(level=3), r"env\.level = 3"),
        (lambda: SearchQA(realms=1).panel("held-out", 10**6), r"'held-out' has \d+ tasks.*request fewer"),
        (lambda: SearchQA().demonstrations(1, 2, key(0)), r"set warmstart\.drills=0"),
        (lambda: MineSweeper(mines=1), r"env\.mines = 1"),
        (lambda: MineSweeper().demonstrations(1, 2, key(0)), r"set warmstart\.drills=0"),
        (lambda: MineSweeper().expert(None, key(0)), "use advise"),
    ],
)
def test_a_wrong_call_is_one_line(call, line):
    with pytest.raises(CoevoError, match=line) as caught:
        call()
    assert "\n" not in str(caught.value)


@each
def test_another_environments_task_and_an_unknown_panel_are_one_line(env):
    with pytest.raises(CoevoError, match=f"'elsewhere', not '{env.name}'") as foreign:
        env.start(Task("elsewhere", "put", "go", "", "train", {}))
    with pytest.raises(CoevoError, match=f"'nowhere'.*{', '.join(env.panels)}") as unknown:
        env.panel("nowhere", 4)
    assert "\n" not in f"{foreign.value}{unknown.value}"
