"""Rollouts: number, length and generating engine."""

from typing import Literal, Self

from pydantic import Field, model_validator

from coevo.configs.base import MAX_ROWS, MAX_TOKENS, Config
from coevo.configs.rollout.engine_config import EngineConfig, TransformersEngineConfig

MAX_TURNS = 50
"""Maximum turns of an episode in an environment without a limit of its own."""
COLD = 0.1
"""Temperature up to which nearly every draw is the likeliest token."""


class SamplingConfig(Config):
    """Sampling of tokens."""

    temperature: float = Field(default=1.0, gt=0, le=1000)
    """Divisor of the logits, in the rollout and in the update."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus mass; an update needs 1 unless it corrects for less (``update.loss.importance_cap``)."""
    top_k: int = Field(default=0, ge=0, le=2**24)
    """Number of most likely tokens kept, 0 for all; an update needs 0 unless it corrects for more."""
    max_new_tokens: int = Field(default=12, ge=1, le=MAX_TOKENS)
    """Maximum length of one turn's answer in tokens."""


class GatewaySourceConfig(Config):
    """Episodes from the sessions of the run's gateway: agents with their own loop play, and their outcomes train."""

    outcomes: int = Field(default=64, ge=1, le=MAX_ROWS)
    """Sessions with an outcome that close an iteration."""
    staleness: int = Field(default=0, ge=0, le=1000)
    """Updates by which the policy that drew an answer may be older than the one that learns from it.

    Sessions with an older answer are left out. Above 0, ``update.loss.importance_cap`` corrects for the difference.
    """
    max_wait: float | None = Field(default=None, gt=0, le=1e6)
    """Minutes that an outcome waits for others: then the iteration closes with fewer; null waits for all of them."""


class RolloutConfig(Config):
    """Episodes of one iteration (CoEvo-RL Eq. 5)."""

    tasks: int = Field(default=16, ge=1, le=MAX_ROWS)
    """Tasks in a batch."""
    group_size: int = Field(default=8, ge=1, le=MAX_ROWS)
    """Rollouts per task under the same retrieved context (N)."""
    sampling: SamplingConfig = SamplingConfig()
    """Sampling of tokens."""
    engine: EngineConfig = TransformersEngineConfig()
    """Generating engine."""
    max_turns: int = Field(default=MAX_TURNS, ge=1, le=10_000)
    """Maximum number of turns per episode, in addition to the environment's own limit."""
    turns: int | None = Field(default=None, ge=1, le=10_000)
    """Turns per update in each of ``tasks`` parallel environments; null plays whole episodes.

    An unfinished episode is cut there for this update and continues in the next one (Context-lite 4.1).
    """
    pace: Literal["turn", "episode"] = Field(default="turn", exclude_if=lambda pace: pace == "turn")
    """``turn``: all episodes play a turn, then all play the next; ``episode``: none waits for another, which suits slow
    environments, and a server generates. Only with ``turn`` may a resumed run be bit-equal.
    """
    ahead: Literal[0, 1] = Field(default=0, exclude_if=lambda ahead: ahead == 0)
    """1: play the next batch during the update; 0: play it afterwards.

    With 1 its policy is one update old, which ``update.loss.importance_cap`` corrects for.
    """

    gateway: GatewaySourceConfig | None = Field(default=None, exclude_if=lambda gateway: gateway is None)
    """Learn from agents with their own loop, who ask the run's gateway; null plays ``tasks`` x ``group_size`` episodes.

    ``tasks`` and ``group_size`` are then the sizes of replays alone.
    """
    lost_limit: float = Field(default=0.5, ge=0, lt=1, exclude_if=lambda limit: limit == 0.5)
    """Share of an iteration's or a panel's episodes that the environment may lose; above it the run stops."""

    @model_validator(mode="after")
    def _at_once(self) -> Self:
        if self.tasks * self.group_size > MAX_ROWS:
            raise ValueError(
                f"tasks x group_size is {self.tasks * self.group_size}: at most {MAX_ROWS} episodes at a time"
            )
        return self
