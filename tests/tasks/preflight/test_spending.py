"""Calls, tokens and money of a policy behind an endpoint, estimated before a run."""

import pytest

from coevo.configs.load.load import load_recipe
from coevo.tasks.preflight.memory import Lengths
from coevo.tasks.preflight.spending import spending

RECIPE, LENGTHS, TURNS = "homerules-experience-only-endpoint", Lengths(100, 900, 50, 300), 4.0
ROLLOUTS, REPLAYED, PANELS = 4 * 8 * 4, 4 * 2 * 16 * 8 // 2, (1 + 1 + 2) * 32
"""Episodes of four iterations, of their replays, and of one panel at both ends and between, another at both ends."""


def of(*overrides):
    return spending(load_recipe(RECIPE, overrides), LENGTHS, TURNS)


def test_every_episode_of_the_run_is_counted_with_prompts_of_mean_and_answers_of_full_length():
    found = of()
    assert found.calls == (ROLLOUTS + REPLAYED + PANELS) * TURNS
    assert (found.prompt_tokens, found.answer_tokens) == (found.calls * 200, found.calls * 50)
    assert found.money is None
    assert of("policy.price={prompt: 2.0, answer: 8.0}").money == pytest.approx(found.calls * (200 * 2 + 50 * 8) / 1e6)


def test_a_run_without_an_iteration_is_evaluated_once():
    config = load_recipe(RECIPE, ["iterations=0", "bank=null", "evaluation={tasks: 10, final_panels: [other-houses]}"])
    assert spending(config, LENGTHS, TURNS).calls == 2 * 10 * TURNS


def test_questions_count_if_the_policy_answers_them_itself():
    writes = "bank.writer={type: model-contrast, candidates: 8}"
    other = "bank.writer={type: model-contrast, candidates: 8, model: {type: endpoint, url: http://h/v1, model: m}}"
    asked = of(writes).calls - of(other).calls
    assert asked == 2 * 8  # two firings


BUDGETS = {
    "tokens that suffice": (("policy.budget={tokens: 100000000}",), "policy.budget allows 100,000,000 tokens"),
    "tokens that do not": (("policy.budget={tokens: 1000}",), "allows 1,000 tokens; the run stops there"),
    "a cost that does not": (
        ("policy.budget={tokens: null, cost: 0.5}", "policy.price={prompt: 2.0, answer: 8.0}"),
        "allows a cost of 0.50; the run stops there",
    ),
    "nothing": (("policy.budget=null",), "no budget bounds them: set policy.budget.tokens"),
    "an empty budget": (("policy.budget={tokens: null}",), "no budget bounds them: set policy.budget.tokens"),
}


@pytest.mark.parametrize(("overrides", "line"), BUDGETS.values(), ids=BUDGETS)
def test_the_budget_is_said_beside_the_estimate(overrides, line):
    first, second = of(*overrides).lines()
    assert first.startswith(f"about {of().calls:,} calls of model with ")
    assert line in second and second.endswith("iteration") == ("stops" in line)


def test_other_policies_cost_nothing():
    assert spending(load_recipe("homerules-react"), LENGTHS, TURNS) is None
