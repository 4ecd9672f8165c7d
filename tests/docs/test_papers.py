"""docs/papers.md names functions and settings that exist, and quotes the values of the recipe."""

import re
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

from configs.advantage import AdvantageConfig
from configs.load import load_recipe, names
from configs.reward import RewardConfig
from configs.schedule import ScheduleConfig

PAGE = (Path(__file__).parents[2] / "docs/papers.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("|")]
FUNCTIONS = sorted(set(re.findall(r"`([a-z0-9_.]+):([A-Za-z0-9_.]+)`", PAGE)))
SETTINGS = sorted({key for row in ROWS for key in re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", row[-1])})
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
    kinds = get_args(get_args(PARTS[chapter])[0])
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
