"""Lengths of prompts and answers against what the policy attends to, and against the memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from coevo.configs.rollout.engine_config import VllmEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.models.capacity.devices import Machine
from coevo.models.capacity.model_shape import ModelShape
from coevo.tasks.preflight.memory import Lengths, needs
from coevo.tasks.preflight.rehearse import Rehearsal
from coevo.tasks.preflight.remedy import Offer

THOUGHT = 256
"""Tokens of a short thought; reasoning models take several times as many."""
MOST = 0.5
"""Share of episodes up to which a limit of turns is not noticed."""


def too_long(config: RunConfig, shape: ModelShape, lengths: Lengths, offer: Callable[[], Offer]) -> Iterator[str]:
    """Problem of a prompt that leaves no room for an answer; ``offer`` is how its user changes settings."""
    limit, name = _limit(config, shape)
    if lengths.longest + lengths.answer > limit:
        yield (
            f"the longest prompt and answer come to {lengths.longest} + {lengths.answer} tokens, {name} attends to "
            f"{limit}: lower context.experience_tokens, context.memory_length or rollout.sampling.max_new_tokens, "
            f"or set context.observation_tokens, which shortens observations{offer().example}"
        )


def cut_short(config: RunConfig, cut: float) -> Iterator[str]:
    """Notice of a limit of turns that most episodes of a random agent reach; ``cut`` is their share."""
    if cut > MOST:
        yield (
            f"rollout.max_turns={config.rollout.max_turns} ended {cut:.0%} of a random agent's episodes, not the "
            "environment: a task that takes more turns cannot succeed; raise it if some do"
        )


def too_short(config: RunConfig, rehearsal: Rehearsal) -> Iterator[str]:
    """Notice of answers that have no room for an action, or for the thinking before it."""
    most, need = config.rollout.sampling.max_new_tokens, rehearsal.answer
    thinks = rehearsal.thinking == "on"
    if need > most:
        yield (
            f"rollout.sampling.max_new_tokens={most} cuts off the action {rehearsal.action!r:.60}, an answer of {need} "
            f"tokens: set rollout.sampling.max_new_tokens={_enough(need + thinks * THOUGHT)}"
        )
    elif thinks and need + THOUGHT > most:
        yield (
            f"rollout.sampling.max_new_tokens={most} leaves {most - need} tokens for thinking before the action: set "
            f"rollout.sampling.max_new_tokens={_enough(need + 4 * THOUGHT)}, or "
            "context.template={enable_thinking: false}"
        )


def _enough(tokens: int) -> int:
    """The next power of two."""
    return 1 << (tokens - 1).bit_length()


def talkative(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, at_most: int) -> Iterator[str]:
    """Notices of conversations that fit with short answers alone: past ``_limit``, or past the memory."""
    limit, name = _limit(config, shape)
    if at_most + lengths.answer > limit:
        yield (
            f"if all answers of a conversation have {lengths.answer} tokens, the longest prompt and answer come to "
            f"{at_most} + {lengths.answer}, and {name} attends to {limit}, where the episode ends (overlong): lower "
            "context.memory_length, rollout.max_turns or rollout.sampling.max_new_tokens"
        )
    longest = max(lengths.longest, min(at_most, limit - lengths.answer))
    lacking = (need for need in needs(config, machine, shape, replace(lengths, longest=longest)) if not need.fits)
    for need in islice(lacking, 1):
        yield f"if all answers of a conversation have {lengths.answer} tokens, {need.lack}"


def _limit(config: RunConfig, shape: ModelShape) -> tuple[int, str]:
    """Tokens that the policy attends to, or its server if that is less, and which of the two it is."""
    engine = config.rollout.engine
    served = engine.max_model_len if isinstance(engine, VllmEngineConfig) else None
    if served is not None and served < shape.positions:
        return served, "rollout.engine.max_model_len"
    return shape.positions, "the policy"
