"""Settings without effect are named, each with a setting that gives it one; those of the recipes have one."""

import pytest

from coevo.configs.compositions import unused
from coevo.configs.load.load import load_recipe
from coevo.configs.load.shipped_files import names

COEVO = "homerules-coevo-rl"
POLICY, TRAINED, WRITER = (
    "homerules-retroagent-policy", "homerules-retroagent-trained", "homerules-coevo-rl-trained-writer",
)  # fmt: skip


def endpoint(settings):
    writer_model = f"{{type: endpoint, url: http://localhost:1/v1, model: m, {settings}}}"
    return f"bank.writer={{type: model-contrast, model: {writer_model}}}"


@pytest.mark.parametrize("recipe", names("recipes"))
def test_no_recipe_has_a_setting_without_effect(recipe):
    assert list(unused(load_recipe(recipe))) == []


@pytest.mark.parametrize(
    ("recipe", "overrides", "said", "remedy"),
    [
        (COEVO, ["bank.retirement={entries: 0}"], "bank.retirement retires nothing", "capacity"),
        (COEVO, ["bank.retirement={entries: 0, capacity: 9, delta: 0.1}"], "delta and replays have", "entries=4"),
        (COEVO, ["bank.retirement={entries: 0, unseen: 9, replays: 9}"], "delta and replays have", "entries=4"),
        (COEVO, ["bank.retirement={beyond: random}"], "beyond=random has no effect", "bank.retirement.capacity"),
        (COEVO, [endpoint("budget: {}")], "budget bounds nothing", "tokens or cost"),
        (COEVO, [endpoint("price: {prompt: 1, answer: 1}")], "price has no effect", "budget.cost"),
        (
            COEVO,
            [endpoint("price: {prompt: 1, answer: 1}, budget: {tokens: 9}")],
            "price has no effect",
            "budget.cost",
        ),
        (
            COEVO,
            ["bank.admission={type: within-group, iterations: 40}", "iterations=40"],
            "no trial ends in iterations=40",
            "lower than 40",
        ),
        (WRITER, ["schedule={type: policy-then-bank, switch_at: 20}"], "policy-then-bank has few", "type=joint"),
        (WRITER, ["schedule={type: frozen-after-first}"], "frozen-after-first has few", "type=joint"),
        (WRITER, ["bank.every=40", "iterations=40"], "none follows in iterations=40", "lower than 40"),
        (POLICY, ["evaluation.reflections=9"], "that the question names", "bank.writer.reveal_outcome=false"),
    ],
)
def test_a_setting_without_effect_is_named(recipe, overrides, said, remedy):
    (line,) = unused(load_recipe(recipe, overrides))
    assert said in line
    assert line.split(": set ")[1].count(remedy) == 1


@pytest.mark.parametrize(
    ("recipe", "overrides"),
    [
        (COEVO, ["bank.retirement={delta: 0.1, replays: 9, beyond: random, capacity: 99}"]),
        (COEVO, ["bank.retirement={entries: 0, unseen: 9}"]),
        (COEVO, [endpoint("price: {prompt: 1, answer: 1}, budget: {cost: 9}")]),
        (COEVO, ["bank.admission={type: within-group, iterations: 39}", "iterations=40"]),
        (COEVO, ["bank.admission={type: within-group, iterations: 40}", "iterations=0"]),
        (WRITER, ["bank.every=39", "iterations=40"]),
        (TRAINED, ["evaluation.reflections=192"]),
    ],
)
def test_a_setting_with_an_effect_is_not(recipe, overrides):
    assert list(unused(load_recipe(recipe, overrides))) == []
