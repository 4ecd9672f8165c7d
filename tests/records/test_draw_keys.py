"""Strings in the keys of draws. None may be renamed: runs would draw other numbers, and a resumed run two kinds."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from coevo.configs.bank.retrieval_config import TfidfConfig
from coevo.configs.env import (
    BabyAIConfig,
    BabyAIRulesConfig,
    HomeRulesConfig,
    MineSweeperConfig,
    SokobanConfig,
    WebShopConfig,
)
from coevo.envs.registry import make
from coevo.flows.cli.play import PlayableAgent
from coevo.records.draws import key, seed_of
from coevo.records.task import Task, key_by
from coevo.tasks.play.retrieve import step_query

ROOT = Path(__file__).parents[2]
CALLS = {"key", "extend", "seed", "_ask"}
"""Functions whose arguments become parts of keys."""
PINNED = """
actions actions another answer answer answers appliance attempt attempt author batch beyond check check critic custom
demonstrations drill episode episode epoch evaluate evaluate evaluate evaluate evaluate evaluate evaluate evaluate
evaluate evaluate evaluate exam expert functions gateway goal guess guide homerules homerules init keys lessons lessons
lessons lessons made noise notices notices notices order order order order others panel panel panel panel panels place
play pool pools price price probe probe probe probe probe probe probe probe queries random_entries random_entries
reflections rehearsal rehearsal rehearsal rehearsal replay replica restored retire retire retrieval retrieval retrieve
retrieve rollout rollout rows rows rows rows sample sample search seeds shown simulator small split split split split
split split step step task tasks tau2 tools tried update update user warmstart warmstart warmstart webshop webshop
weights words write writer
"""
"""Every string in a call of one of them, as often as it is there; a new one is added here."""


def strings(call):
    """String constants among the arguments of a call, those in f-strings too."""
    parts = [part for each in call.args for part in (each.values if isinstance(each, ast.JoinedStr) else [each])]
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def test_strings_in_keys_stay_as_they_are():
    paths = (path for room in ("envs", "flows", "memory", "models", "tasks") for path in (ROOT / room).rglob("*.py"))
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    calls = (each for each in nodes if getattr(each.func, "attr", getattr(each.func, "id", "")) in CALLS)
    found = Counter(name.replace(" ", "_") for call in calls for name in strings(call))
    pinned = Counter(PINNED.split())
    assert (found - pinned, pinned - found) == (Counter(), Counter()), "renamed or added, and gone"


@pytest.mark.parametrize(
    ("config", "digest"),
    [
        (HomeRulesConfig(), 2096158682084575205),
        (BabyAIConfig(type="babyai"), 7408707737826521133),
        (BabyAIRulesConfig(), 17926832351932558644),
        (SokobanConfig(), 11492034418332815922),
        (MineSweeperConfig(), 2715013446764535804),
        (WebShopConfig(), 1707829958574159543),
    ],
)
def test_tasks_whose_ids_are_in_keys_stay_as_they_are(config, digest):
    env = make(config)
    panels = [each for name in sorted(env.panels) for each in env.panel(name, 4).tasks]
    tasks = [*env.sample(4, key(0)), *env.probe(2, key(0)).tasks, *panels]
    assert seed_of(key(*(each.id for each in tasks))) == digest


def test_texts_that_become_parts_of_keys_stay_as_they_are():
    about = Task("homerules", "heat", "heat mug", "lotus", "train", {})
    assert [*PlayableAgent] == ["expert", "random", "human"]
    assert step_query(about, "at hall", TfidfConfig(step_query="instruction+observation")) == "heat mug . at hall"
    assert key_by("scope+kind")(about) == "lotus/heat"
