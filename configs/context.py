"""The prompt: what the policy is shown each turn, and how its answer is read."""

from typing import Literal

from pydantic import Field

from configs.base import TOKENS, Config


class ContextConfig(Config):
    """History window, experience block and answer format."""

    style: Literal["words", "chat"] = "words"
    """``words``: the terse format of word-level policies; ``chat``: prose for pretrained models."""
    memory_length: int | None = Field(default=1, ge=0, le=10_000)
    """Previous turns kept in the prompt (m of Context-lite); null keeps all."""
    history: Literal["actions", "states"] = "actions"
    """What is shown of a previous turn: its action and what came of it, or what was observed before as well."""
    placement: Literal["task", "system"] = "task"
    """Where lessons stand: behind the instruction, or in a system message, which leaves the user's as it is without."""
    experience_tokens: int = Field(default=200, ge=0, le=TOKENS)
    """Longest experience block in tokens; entries that do not fit are left out whole."""
