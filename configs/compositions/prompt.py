"""What the policy is shown, and whether it can read that."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from configs.run import RunConfig


def flaws(config: "RunConfig") -> Iterator[str]:
    """What keeps the prompt from working."""
    yield from _style(config)
    yield from _room(config)


def _style(config: "RunConfig") -> Iterator[str]:
    if config.policy.type == "scratch" and config.context.style == "chat":
        yield "context.style=chat needs a pretrained policy: set context.style=words"


def _room(config: "RunConfig") -> Iterator[str]:
    context, policy = config.context, config.policy
    if config.bank is not None and context.experience_tokens == 0:
        yield "context.experience_tokens=0 shows nothing of the bank: set context.experience_tokens=200, or bank=null"
    answer = config.rollout.sampling.max_new_tokens
    if policy.type == "scratch" and context.experience_tokens + answer >= policy.max_positions:
        yield (
            f"context.experience_tokens={context.experience_tokens} and an answer of {answer} do not fit "
            f"policy.max_positions={policy.max_positions}: lower context.experience_tokens"
        )
