"""Who writes candidate entries. The ``type`` names the module of ``memory.writers``."""

from typing import Literal

from pydantic import Field

from configs.base import Config


class ContrastWriterConfig(Config):
    """The built-in writer: contrastive pair, else success cluster, else failure cluster."""

    type: Literal["contrast"] = "contrast"
    """Who writes candidate entries."""
    buffer: int = Field(default=64, ge=1)
    """Most episodes a firing sees, contrastive pairs first."""
    candidates: int = Field(default=16, ge=1)
    """Most candidates of one firing."""


WriterConfig = ContrastWriterConfig
