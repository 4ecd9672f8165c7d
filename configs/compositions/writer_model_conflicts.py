"""Conflicts of a writer model with policy, prompt and engine."""

from collections.abc import Iterator

from coevo.configs.bank.writer import ModelReflectionConfig, asked_model
from coevo.configs.bank.writer_model_config import (
    NO_PROSE,
    AnyWriterModelConfig,
    FrozenWriterModelConfig,
    PolicyWriterModelConfig,
)
from coevo.configs.compositions.learning import LEAST_TEMPERATURE
from coevo.configs.policy_config import WarmStartConfig
from coevo.configs.sections import RunSections

OF_REFLECTIONS = ("predictions", "lessons", "asides", "write")
"""Fields of the warm start that are about taught reflections."""


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of the writer model with other sections."""
    writer_model = None if config.bank is None else asked_model(config.bank.writer)
    yield from _words(config)
    yield from _untaught(config)
    yield from _trained(config)
    yield from _examined(config)
    if isinstance(writer_model, PolicyWriterModelConfig):
        yield from _speechless(config)
        yield from _room(writer_model, config)
        yield from _cold(writer_model, config.rollout.engine.type, "rollout")
    elif isinstance(writer_model, FrozenWriterModelConfig):
        yield from _cold(writer_model, writer_model.engine.type, "bank.writer.model")


def _speechless(config: RunSections) -> Iterator[str]:
    single = config.policy.type == "scratch" or config.context.style == "words"
    if single and not (_in_words(config) and _taught(config)):
        yield NO_PROSE


def _words(config: RunSections) -> Iterator[str]:
    """Conflicts of reflections in words, which a policy of single words learns in its warm start."""
    writer = None if config.bank is None else config.bank.writer
    own = writer is not None and isinstance(asked_model(writer), PolicyWriterModelConfig)
    single = config.policy.type == "scratch" and config.context.style == "words"
    if _in_words(config) and not (single and own):
        yield (
            "bank.writer.form=words is for a policy of single words that writes itself: set bank.writer.form=prose, or "
            "bank.writer.model.type=policy, policy.type=scratch and context.style=words"
        )
    if _taught(config) and not _in_words(config):
        yield (
            "warmstart.reflections needs a writer that asks for reflections in words: set warmstart.reflections=0, or "
            "bank.writer.type=model-reflection and bank.writer.form=words"
        )


def _untaught(config: RunSections) -> Iterator[str]:
    """Settings of reflections in a warm start that teaches none."""
    warm = config.warmstart
    for name in OF_REFLECTIONS:
        default = WarmStartConfig.model_fields[name].default
        if warm is not None and not warm.reflections and getattr(warm, name) != default:
            yield (
                f"warmstart.{name} is a setting of taught reflections: set warmstart.reflections=16, or "
                f"warmstart.{name}={default}"
            )


def _in_words(config: RunSections) -> bool:
    writer = None if config.bank is None else config.bank.writer
    return isinstance(writer, ModelReflectionConfig) and writer.form == "words"


def _taught(config: RunSections) -> bool:
    return config.warmstart is not None and config.warmstart.steps > 0 and config.warmstart.reflections > 0


def _trained(config: RunSections) -> Iterator[str]:
    """Conflicts of the training of the policy as writer."""
    trained, bank = None if config.update is None else config.update.writer, config.bank
    if trained is None:
        return
    writer_model = None if bank is None else asked_model(bank.writer)
    if bank is None or not isinstance(writer_model, PolicyWriterModelConfig):
        yield (
            "update.writer trains the policy as writer: set update.writer=null, or bank.writer.type=model-reflection "
            "and bank.writer.model.type=policy"
        )
        return
    drawn, played = writer_model.temperature, config.rollout.sampling.temperature
    if drawn != played:
        yield (
            f"update.writer learns at the temperature of the rollouts: set bank.writer.model.temperature={played:g} "
            f"instead of {drawn:g}"
        )
    if trained.reward == "prediction" and getattr(bank.writer, "told", "outcome") == "outcome":
        yield (
            "update.writer.reward=prediction needs predictions of an outcome that is not told: set "
            "bank.writer.type=model-reflection and bank.writer.told=nothing"
        )
    if trained.reward == "prediction" and config.rollout.turns is not None:
        yield (
            "update.writer.reward=prediction needs the outcome of each attempt, and rollout.turns updates before some "
            "have one: set rollout.turns=null"
        )
    if trained.reward == "replay" and getattr(bank.admission, "per", "batch") == "batch":
        yield (
            "update.writer.reward=replay needs the gain of each candidate: set bank.admission.type=replay and "
            "bank.admission.per=entry"
        )


def _examined(config: RunSections) -> Iterator[str]:
    if config.evaluation.reflections and (config.bank is None or config.bank.writer.reflects is False):
        yield (
            "evaluation.reflections needs a reflecting writer: set bank.writer.type=model-reflection, or "
            "evaluation.reflections=0"
        )


def _room(writer_model: PolicyWriterModelConfig, config: RunSections) -> Iterator[str]:
    engine, policy = config.rollout.engine, config.policy
    if policy.type == "scratch" and writer_model.max_new_tokens >= policy.max_positions:
        yield (
            f"bank.writer.model.max_new_tokens={writer_model.max_new_tokens} leaves no room for a question in "
            f"policy.max_positions={policy.max_positions}: lower max_new_tokens"
        )
    if (
        engine.type == "vllm"
        and engine.max_model_len is not None
        and writer_model.max_new_tokens >= engine.max_model_len
    ):
        yield (
            f"bank.writer.model.max_new_tokens={writer_model.max_new_tokens} leaves no room for a question in "
            f"rollout.engine.max_model_len={engine.max_model_len}: lower max_new_tokens"
        )


def _cold(writer_model: AnyWriterModelConfig, engine: str, section: str) -> Iterator[str]:
    if engine == "vllm" and writer_model.temperature < LEAST_TEMPERATURE:
        yield (
            f"bank.writer.model.temperature={writer_model.temperature:g} becomes {LEAST_TEMPERATURE} in vLLM: set "
            f"bank.writer.model.temperature={LEAST_TEMPERATURE}, or {section}.engine.type=transformers"
        )
