"""Rollouts: how many, how long, and what generates them."""

from typing import Literal, Self

from pydantic import Field, model_validator

from configs.base import ROWS, TOKENS, Config
from configs.engine import EngineConfig, TransformersEngineConfig


class SamplingConfig(Config):
    """How tokens are drawn."""

    temperature: float = Field(default=1.0, gt=0, le=1000)
    """Divides the logits, in the rollout and in the update."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus mass; an update refuses less than 1 unless it corrects for it (``update.loss.importance_cap``)."""
    top_k: int = Field(default=0, ge=0, le=2**24)
    """Most likely tokens kept, 0 for all; an update refuses more than 0 unless it corrects for it."""
    max_new_tokens: int = Field(default=12, ge=1, le=TOKENS)
    """Longest answer of one turn in tokens."""


class RolloutConfig(Config):
    """One iteration's episodes (CoEvo-RL Eq. 5)."""

    tasks: int = Field(default=16, ge=1, le=ROWS)
    """Tasks in a batch."""
    group_size: int = Field(default=8, ge=1, le=ROWS)
    """Rollouts of one task under the same retrieved context (N)."""
    sampling: SamplingConfig = SamplingConfig()
    """How tokens are drawn."""
    engine: EngineConfig = TransformersEngineConfig()
    """What generates."""
    max_turns: int = Field(default=50, ge=1, le=10_000)
    """Turns after which an episode is cut, whatever the environment allows."""
    turns: int | None = Field(default=None, ge=1, le=10_000)
    """Turns that each of ``tasks`` parallel environments plays an update; null plays whole episodes.

    An episode that is not over then is cut there for this update and goes on in the next one (Context-lite 4.1).
    """
    ahead: Literal[0, 1] = Field(default=0, exclude_if=lambda ahead: ahead == 0)
    """With 1 the next batch is played while this one is learned from; with 0 after that.

    Its policy is then one update old, which ``update.loss.importance_cap`` corrects for.
    """

    @model_validator(mode="after")
    def _at_once(self) -> Self:
        if self.tasks * self.group_size > ROWS:
            raise ValueError(f"tasks x group_size is {self.tasks * self.group_size}: at most {ROWS} episodes at a time")
        return self
