"""Reflections for the warm start: a policy of single words learns to write in words about expert episodes."""

from collections.abc import Callable
from typing import Any

from coevo.configs.bank.writer import ModelReflectionConfig
from coevo.configs.policy_config import WarmStartConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.memory.writers.model.words import CHOICES, PREDICTIONS
from coevo.memory.writers.writer import writer_of
from coevo.models.authors.prompt import Prompts
from coevo.models.policy.cloning import Examples
from coevo.records.draws import extend, key
from coevo.records.task import key_by
from coevo.tasks.writing.teacher import Chance, answered


def teaches(config: RunConfig) -> ModelReflectionConfig | None:
    """Writer whose questions the warm start teaches; None if it teaches none."""
    writer, warm = None if config.bank is None else config.bank.writer, config.warmstart
    asks = warm is not None and warm.reflections > 0
    return writer if asks and isinstance(writer, ModelReflectionConfig) else None


def reflections(config: RunConfig, env: Environment[object], tokenizer: Any) -> Callable[[int], Examples]:
    """Function that returns answered questions of a step, in token ids, each step's about another world."""
    asked, warm, bank = teaches(config), config.warmstart, config.bank
    if asked is None or warm is None or bank is None:
        return lambda step: ()
    pool, base = key_by(bank.key), key(config.seed, "warmstart", "reflections")
    writer, prompts, count = writer_of(asked, pool), Prompts(tokenizer, config.context.template), warm.reflections
    chance = Chance(warm.predictions == "random", warm.lessons, warm.asides)

    def examples(step: int) -> Examples:
        draw = extend(base, step)
        found = answered(env, writer, pool, env.probe(count, draw).tasks, 1, draw, chance)
        return [(prompts.ids(question), prompts.target(answer)) for question, answer in found]

    return examples


def undetermined(warm: WarmStartConfig, tokenizer: Any) -> list[int]:
    """Ids of the tokens of a taught answer that its teacher draws: predictions, and which steps have a line.

    All other tokens of a line follow from its step. Steps and counts of subtasks have the same tokens, so that the
    counts are left out with the steps.
    """
    guesses = PREDICTIONS if warm.predictions == "random" else ()
    steps = (*CHOICES, tokenizer.eos_token) if warm.lessons < 1 or warm.asides else ()
    found: list[int] = tokenizer.convert_tokens_to_ids([*guesses, *steps])
    return found
