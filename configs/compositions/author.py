"""Conflicts of an author with policy, prompt and engine."""

from collections.abc import Iterator

from coevo.configs.bank.author import NO_PROSE, AnyAuthorConfig, FrozenAuthorConfig, PolicyAuthorConfig
from coevo.configs.bank.writer import ModelWriterConfig
from coevo.configs.compositions.learning import LEAST_TEMPERATURE
from coevo.configs.sections import RunSections


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of the writer's author with other sections."""
    writer = None if config.bank is None else config.bank.writer
    if not isinstance(writer, ModelWriterConfig):
        return
    author = writer.author
    if isinstance(author, PolicyAuthorConfig):
        yield from _speechless(config)
        yield from _room(author, config)
        yield from _cold(author, config.rollout.engine.type, "rollout")
    elif isinstance(author, FrozenAuthorConfig):
        yield from _cold(author, author.engine.type, "bank.writer.author")


def _speechless(config: RunSections) -> Iterator[str]:
    if config.policy.type == "scratch" or config.context.style == "words":
        yield NO_PROSE


def _room(author: PolicyAuthorConfig, config: RunSections) -> Iterator[str]:
    engine = config.rollout.engine
    if engine.type == "vllm" and engine.max_model_len is not None and author.max_new_tokens >= engine.max_model_len:
        yield (
            f"bank.writer.author.max_new_tokens={author.max_new_tokens} leaves no room for a question in "
            f"rollout.engine.max_model_len={engine.max_model_len}: lower max_new_tokens"
        )


def _cold(author: AnyAuthorConfig, engine: str, section: str) -> Iterator[str]:
    if engine == "vllm" and author.temperature < LEAST_TEMPERATURE:
        yield (
            f"bank.writer.author.temperature={author.temperature:g} becomes {LEAST_TEMPERATURE} in vLLM: set "
            f"bank.writer.author.temperature={LEAST_TEMPERATURE}, or {section}.engine.type=transformers"
        )
