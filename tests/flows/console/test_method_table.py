"""The table of parts defines a method: two that differ in it differ there."""

import pytest

from coevo.configs.load.load import load_method, load_recipe
from coevo.flows.cli.catalogue import parts


@pytest.mark.parametrize(
    ("one", "other", "row", "shown"),
    [
        ("context-lite", "ppo", "turns", ("16 per update, at most 128", "at most 50")),
        ("retroagent", "jerp", "sampling", ("temperature 0.4", "temperature 1")),
        ("retroagent", "coevo-rl", "pools", ("one per task", "one per scope")),
        ("skillrl-style", "grpo", "pools", ("one per kind", "-")),
        ("jerp", "reflexion-style", "references", ("8 per pool", "-")),
        ("reflexion-style", "react", "discovery", ("3 attempts", "-")),
        ("d2skill-style", "retroagent", "admission", ("append capacity=600", "append")),
        ("memrl-style", "reflexion-style", "retrieval", ("two-phase k=3 scoped=False", "utility k=3")),
    ],
)
def test_methods_that_differ_in_a_part_differ_in_its_row(one, other, row, shown):
    assert tuple(parts(load_method(name))[row] for name in (one, other)) == shown


@pytest.mark.parametrize(
    ("recipe", "setting", "row"),
    [
        ("homerules-context-lite", "rollout.turns=2", "turns"),
        ("homerules-context-lite", "rollout.max_turns=7", "turns"),
        ("homerules-retroagent", "rollout.sampling.temperature=0.5", "sampling"),
        ("homerules-experience-only", "rollout.sampling.top_k=5", "sampling"),
        ("homerules-coevo-rl", "bank.key=kind", "pools"),
        ("homerules-jerp", "bank.references=2", "references"),
        ("homerules-coevo-rl", "bank.retrieval.scoped=false", "retrieval"),
        ("homerules-grpo", "evaluation.discovery=3", "discovery"),
    ],
)
def test_a_setting_that_defines_a_method_changes_one_row(recipe, setting, row):
    before, after = parts(load_recipe(recipe)), parts(load_recipe(recipe, [setting]))
    assert [name for name in before if before[name] != after[name]] == [row]
