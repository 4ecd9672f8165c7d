"""docs/papers.md names functions and settings that exist, and quotes the values of the recipe."""

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from support.defaults import leaves, written
from support.outside import built_in

from coevo.configs.load.load import load_method, load_recipe
from coevo.configs.load.shipped_files import names
from coevo.configs.schedule_config import ScheduleConfig
from coevo.configs.update.advantage_config import AdvantageConfig
from coevo.configs.update.reward_config import RewardConfig
from coevo.models.losses.policy_loss import CLAMP

PAGE = (Path(__file__).parents[2] / "docs/papers.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("|")]
FUNCTIONS = sorted(set(re.findall(r"`([a-z0-9_.]+):([A-Za-z0-9_.]+)`", PAGE)))
SETTINGS = sorted({key for row in ROWS for key in re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", row[-1])})
METHODS = Path(__file__).parents[2] / "configs/methods"
PARTS = {"Rewards": RewardConfig, "Advantages": AdvantageConfig, "Schedules": ScheduleConfig}


def test_the_page_is_read():
    assert len(FUNCTIONS) > 10
    assert len(SETTINGS) > 10


@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_a_named_function_exists(module, name):
    found = reduce(getattr, name.split("."), import_module(module))
    assert found.__doc__


@pytest.mark.parametrize("key", SETTINGS)
def test_a_named_setting_exists(key):
    assert reduce(getattr, key.split("."), load_recipe("homerules-coevo-rl")) is not None


def test_a_named_recipe_exists():
    named = set(re.findall(r"`(homerules-[a-z-]+)`", PAGE))
    assert len(named) > 3
    assert named <= set(names("recipes"))


@pytest.mark.parametrize("chapter", PARTS)
def test_every_part_has_a_row(chapter):
    rows = PAGE.partition(f"\n## {chapter}\n")[2].partition("\n## ")[0]
    kinds = built_in(PARTS[chapter])
    assert re.findall(r"^\| `([a-z-]+)`", rows, re.MULTILINE) == [
        kind.model_fields["type"].annotation.__args__[0] for kind in kinds
    ]


def test_the_departures_of_the_recipe_are_those_stated():
    config = load_recipe("homerules-coevo-rl")
    stated = re.search(r"Δ = (\d+), k = (\d+), learning rate ([\d.e-]+), KL coefficient ([\d.]+)", PAGE)
    update = config.update
    values = (config.bank.every, config.bank.retrieval.k, update.optimizer.lr, update.loss.kl_coefficient)
    assert tuple(map(float, stated.groups())) == values
    assert (update.optimizer.minibatches, update.invalid_penalty) == (2, 0.05)


def changes(method):
    """Settings in which the embedded household's recipe differs from the method."""
    said = leaves(yaml.safe_load((METHODS / f"{method}.yaml").read_text(encoding="utf-8")))
    found = leaves(load_recipe(f"homerules-{method}").model_dump(mode="json"))
    changed = {key: (value, found[key]) for key, value in said.items() if found.get(key, value) != value}
    return [f"{key} {written(value)} → {written(other)}" for key, (value, other) in changed.items()]


def test_every_value_that_a_recipe_sets_otherwise_is_stated():
    rows = PAGE.partition("\n## Values at laptop size\n")[2]
    stated = dict(re.findall(r"^\| `homerules-([a-z0-9-]+)` \| (.*) \|$", rows, re.MULTILINE))
    methods = [path.stem for path in sorted(METHODS.glob("*.yaml")) if f"homerules-{path.stem}" in names("recipes")]
    assert len(methods) >= 16
    changed = {method: ", ".join(changes(method)) for method in methods}
    assert stated == {method: said for method, said in changed.items() if said}


def test_no_recipe_claims_values_of_a_paper_as_a_whole():
    for path in (METHODS.parent).glob("*/*.yaml"):
        assert "the paper's values" not in path.read_text(encoding="utf-8"), path


def test_the_page_says_whose_potential_the_method_takes():
    potential = load_method("retroagent").update.reward.potential
    assert potential == "progress"
    assert f"set `potential: {potential}`" in " ".join(PAGE.split())


def test_the_page_has_the_clamp_of_the_kl_term():
    assert f"at most {CLAMP:g} either way" in " ".join(PAGE.split())
