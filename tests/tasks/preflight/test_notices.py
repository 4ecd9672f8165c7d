"""Notices before a start: a writer that cannot read an environment, a bank that reaches no held-out task."""

from contextlib import closing

import pytest

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.tasks.preflight.notices import notices

FINDS = "bank.writer.type=quote-contrast finds nothing to write in 24 episodes of babyai"


@pytest.mark.parametrize(("iterations", "told"), [(5, True), (20, False), (0, False)])
def test_a_writer_that_never_fires_is_named(iterations, told):
    found = notices(load_recipe("homerules-coevo-rl", ["bank.every=20", f"iterations={iterations}"]))
    line = f"the writer does not fire in {iterations} iterations, and the bank stays as it is: set bank.every="
    assert any(each.startswith(line) for each in found) == told


@pytest.mark.parametrize(
    ("recipe", "overrides", "told"),
    [
        ("babyai-rules-coevo-rl", [], True),
        ("babyai-rules-coevo-rl-writer-model", [], False),
        ("homerules-coevo-rl", [], False),
        ("homerules-grpo", [], False),
    ],
)
def test_a_rule_that_finds_nothing_is_named(recipe, overrides, told):
    config = load_recipe(recipe, overrides)
    with closing(make(config.env)) as env:
        found = [each for each in notices(config, env) if each.startswith(FINDS)]
    assert bool(found) == told
    assert all(each.endswith("bank.writer.type=model-contrast") for each in found)


def unreached(recipe, *overrides):
    config = load_recipe(recipe, overrides)
    with closing(make(config.env)) as env:
        return [each for each in notices(config, env) if each.startswith("bank.key=")]


def test_a_key_that_no_held_out_task_shares_is_named_with_those_that_it_does():
    (notice,) = unreached("homerules-jerp", "bank.key=task")
    assert notice == (
        "bank.key=task: no task of panel seen-houses has the key of a training task, so the bank gives it no entry; "
        "set bank.key=scope+kind, or bank.key=kind, or bank.key=scope, or bank.retrieval.scoped=false"
    )


@pytest.mark.parametrize(
    ("recipe", "overrides"),
    [
        ("homerules-jerp", []),
        ("homerules-jerp-qwen2.5-7b", []),
        ("homerules-jerp", ["bank.key=kind"]),
        ("homerules-jerp", ["bank.key=task", "bank.retrieval.scoped=false"]),
        ("homerules-jerp", ["bank.key=task", "iterations=0"]),
        # Later attempts at a task read what the earlier ones wrote.
        ("homerules-reflexion-style", []),
        ("homerules-grpo", []),
    ],
)
def test_a_key_that_reaches_them_or_need_not_is_not(recipe, overrides):
    assert unreached(recipe, *overrides) == []


def test_panels_with_a_bank_of_their_own_are_not_compared():
    config = ("bank.key=task", "evaluation.panels=[other-facts]", "evaluation.final_panels=[no-bank]")
    assert unreached("homerules-jerp", *config) == []
