"""Each recipe's writer asks the model of its paper, with its temperature and length; where not, the header says so."""

import re
from dataclasses import dataclass

import pytest

from coevo.configs.load.load import load_recipe
from coevo.configs.load.pairing import Pairing, load_pairing
from coevo.configs.load.shipped_files import describe, names


@dataclass(frozen=True)
class Paper:
    """Model that a paper's writer asks, how a header names it, and its sampling, where the paper gives it."""

    model: str
    named: str
    temperature: float | None = None
    length: int | None = None


COEVO_RL = Paper("closed", "closed")  # its section of limitations
JERP = Paper("frozen", "frozen parameters")  # below Eq. 26
RETROAGENT = Paper("policy", "policy", temperature=0.4, length=2048)  # Table 10
SLEA_RL = Paper("policy", "the same base model")  # section 4.1, which does not say with which weights

# Paper, and what the recipe's writer asks: model, temperature, length of an answer.
RECIPES = {
    "babyai-coevo-rl-qwen3-0.6b": (COEVO_RL, "policy", 0.7, 1024),
    "babyai-coevo-rl-qwen3-4b": (COEVO_RL, "policy", 0.7, 1024),
    "babyai-coevo-rl-qwen3-8b-lora": (COEVO_RL, "policy", 0.7, 1024),
    "babyai-rules-coevo-rl-writer-model": (COEVO_RL, "endpoint", 0.2, 128),
    "homerules-coevo-rl-qwen3-0.6b": (COEVO_RL, "policy", 0.7, 1024),
    "homerules-coevo-rl-qwen3-4b": (COEVO_RL, "policy", 0.7, 1024),
    "homerules-coevo-rl-qwen3-8b": (COEVO_RL, "policy", 0.7, 1024),
    "homerules-coevo-rl-qwen3-8b-lora": (COEVO_RL, "policy", 0.7, 1024),
    "homerules-coevo-rl-trained-writer": (COEVO_RL, "policy", 1.0, 64),
    "homerules-jerp-qwen2.5-7b": (JERP, "frozen", 0.7, 1024),
    "homerules-retroagent-policy": (RETROAGENT, "policy", 0.2, 64),
    "homerules-retroagent-qwen2.5-7b": (RETROAGENT, "policy", 0.4, 2048),
    "homerules-retroagent-trained": (RETROAGENT, "policy", 0.4, 64),
    "homerules-retroagent-trained-qwen2.5-7b": (RETROAGENT, "policy", 0.4, 2048),
    "homerules-slea-rl-qwen2.5-1.5b": (SLEA_RL, "policy", 0.7, 1024),
    "homerules-slea-rl-qwen2.5-7b": (SLEA_RL, "policy", 0.7, 1024),
    "rows-coevo-rl-qwen3-0.6b": (COEVO_RL, "policy", 0.7, 1024),
    "textworld-coevo-rl": (COEVO_RL, "policy", 0.7, 1024),
    "textworld-coevo-rl-qwen3-0.6b": (COEVO_RL, "policy", 0.7, 1024),
}
METHODS = {
    "coevo-rl": (COEVO_RL, "policy", 0.7, 1024),
    "experience-only": (COEVO_RL, "policy", 0.7, 1024),
    "jerp": (JERP, "policy", 0.7, 1024),
    "retroagent": (RETROAGENT, "policy", 0.4, 2048),
    "slea-rl": (SLEA_RL, "policy", 0.7, 1024),
}
"""Methods of the papers, paired with a pretrained policy."""


def asked(config):
    """Model, temperature and length of an answer; None for a writer that asks no model."""
    model = getattr(config.bank and config.bank.writer, "model", None)
    return model and (model.type, model.temperature, model.max_new_tokens)


def departures(paper, model, temperature, length):
    """Words that a header needs for what is not as in the paper, or not said there."""
    if model != paper.model or paper is SLEA_RL:
        yield paper.named
    if paper.temperature not in (None, temperature):
        yield f"{paper.temperature:g}"
    if paper.length not in (None, length):
        yield f"{paper.length:,}"


def test_the_table_has_all_recipes_whose_writer_asks_a_model():
    assert set(RECIPES) == {name for name in names("recipes") if asked(load_recipe(name))}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_asks_the_model_of_its_paper_or_names_the_departure(recipe):
    assert asked(load_recipe(recipe)) == RECIPES[recipe][1:]
    header = describe("recipes", recipe)
    assert [words for words in departures(*RECIPES[recipe]) if words not in header] == []


@pytest.mark.parametrize("method", METHODS)
def test_a_method_with_a_pretrained_policy_asks_the_model_of_its_paper_or_names_the_departure(method):
    config = load_pairing(Pairing("homerules", method, "qwen2.5-7b"))
    assert asked(config) == METHODS[method][1:]
    header = describe("methods", method)
    assert [words for words in departures(*METHODS[method]) if words not in header] == []


@pytest.mark.parametrize("method", METHODS)
def test_a_method_says_that_a_rule_writes_or_a_pretrained_policy(method):
    assert re.search("here a rule [a-z]+, or a pretrained policy", describe("methods", method))
    assert asked(load_recipe(f"homerules-{method}")) is None


def test_the_frozen_editor_has_the_parameters_that_the_policy_starts_with():
    config = load_recipe("homerules-jerp-qwen2.5-7b")
    assert config.bank.writer.model.path == config.policy.path
