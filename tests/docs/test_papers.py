"""docs/papers.md names functions and settings that exist, and quotes the values of the recipe."""

import json
import re
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
import yaml

from coevo.configs.load.load import load_method, load_recipe, names
from coevo.configs.schedule import ScheduleConfig
from coevo.configs.update.advantage import AdvantageConfig
from coevo.configs.update.reward import RewardConfig

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


def leaves(tree, path=()):
    if not isinstance(tree, dict):
        return {".".join(path): tree}
    return {key: leaf for name, below in tree.items() for key, leaf in leaves(below, (*path, name)).items()}


def changes(method):
    """Settings in which the embedded household's recipe differs from the method."""
    said = leaves(yaml.safe_load((METHODS / f"{method}.yaml").read_text(encoding="utf-8")))
    found = leaves(load_recipe(f"homerules-{method}").model_dump(mode="json"))
    changed = {key: (value, found[key]) for key, value in said.items() if found.get(key, value) != value}
    return [f"{key} {written(value)} → {written(other)}" for key, (value, other) in changed.items()]


def written(value):
    return value if isinstance(value, str) else json.dumps(value)


def test_every_value_that_a_recipe_sets_otherwise_is_stated():
    rows = PAGE.partition("\n## Values at laptop size\n")[2]
    stated = dict(re.findall(r"^\| `homerules-([a-z0-9-]+)` \| (.*) \|$", rows, re.MULTILINE))
    methods = [path.stem for path in sorted(METHODS.glob("*.yaml")) if f"homerules-{path.stem}" in names("recipes")]
    assert len(methods) >= 16
    changed = {method: ", ".join(changes(method)) for method in methods}
    assert stated == {method: said for method, said in changed.items() if said}


PAPERS = {
    # Section 4.1, Eq. 2, 6 and 7.
    "coevo-rl": {
        "rollout.tasks", "rollout.group_size", "bank.every", "bank.retrieval.k", "update.loss.kl",
        "update.loss.kl_coefficient", "update.optimizer.lr",
    },
    # Sections 4.1, 4.2 and 5.1.
    "context-lite": {
        "rollout.tasks", "rollout.turns", "rollout.max_turns", "context.memory_length", "context.history", "bank",
        "update.advantage.gamma_step", "update.advantage.lambda_step", "update.advantage.gamma_token",
        "update.advantage.lambda_token",
    },
    # Table I, Eq. 2, 5, 13, 17 and 23, Algorithm 1.
    "jerp": {
        "context.memory_length", "context.history", "rollout.group_size", "rollout.max_turns", "bank.every", "bank.key",
        "bank.retrieval.per", "update.reward.gamma", "update.advantage.ddof", "update.loss.aggregation",
        "update.optimizer.lr",
    },
    # Table 10, sections 3.1, 3.3 and 3.4.
    "retroagent": {
        "context.memory_length", "context.history", "rollout.tasks", "rollout.group_size",
        "rollout.sampling.temperature", "bank.every", "bank.key", "bank.retrieval.k", "bank.retrieval.threshold",
        "bank.retrieval.alpha", "bank.retrieval.kappa", "bank.retrieval.share", "bank.retrieval.scoped",
        "bank.utility.initial", "bank.utility.rate", "bank.utility.score", "bank.writer.induction",
        "update.reward.gamma", "update.loss.kl_coefficient", "update.loss.aggregation",
    },
    # Section 4.1, appendix D, Eq. 1 to 8.
    "slea-rl": {
        "context.memory_length", "context.history", "context.experience_tokens", "context.placement", "rollout.tasks",
        "rollout.group_size", "clusters.delta", "bank.every", "bank.retrieval.per", "bank.retrieval.k",
        "bank.retrieval.warnings", "bank.retrieval.threshold", "bank.retrieval.warmup", "bank.retrieval.min_entries",
        "bank.writer.trajectories", "bank.writer.strategies", "bank.writer.warnings",
        "bank.admission.capacity.strategy", "bank.admission.capacity.warning", "bank.admission.novelty",
        "update.advantage.weight", "update.advantage.mode",
        "update.advantage.anchor", "update.loss.clip_low", "update.loss.clip_high", "update.loss.kl_coefficient",
        "update.loss.aggregation", "update.optimizer.lr",
    },
}  # fmt: skip
"""Settings of a method that its paper gives; the tables of the page give the part that a ``type`` names."""


@pytest.mark.parametrize("method", PAPERS)
def test_every_value_that_no_paper_gives_is_stated_as_ours(method):
    rows = PAGE.partition("\n## Values that no paper gives\n")[2].partition("\n## ")[0]
    stated = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", rows, re.MULTILINE))
    said = leaves(yaml.safe_load((METHODS / f"{method}.yaml").read_text(encoding="utf-8")))
    ours = {key: value for key, value in said.items() if not key.endswith(".type") and key not in PAPERS[method]}
    assert set(said) >= PAPERS[method]
    assert stated[method].split(", ") == [f"{key} {written(value)}" for key, value in ours.items()]


def test_no_recipe_claims_values_of_a_paper_as_a_whole():
    for path in (METHODS.parent).glob("*/*.yaml"):
        assert "the paper's values" not in path.read_text(encoding="utf-8"), path


def test_the_page_says_whose_potential_the_method_takes():
    potential = load_method("retroagent").update.reward.potential
    assert potential == "progress"
    assert f"set `potential: {potential}`" in " ".join(PAGE.split())
