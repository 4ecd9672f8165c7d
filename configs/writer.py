"""Who writes candidate entries. The ``type`` names the module of ``memory.writers``."""

from typing import Annotated, Literal

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


class EditorWriterConfig(Config):
    """The built-in editor: edit operations on the pools of the episodes' tasks (JERP Eq. 26), by rule."""

    type: Literal["editor"]
    """Who writes."""
    operations: int = Field(default=32, ge=1)
    """Most operations on one pool and firing: corrections and votes first, new entries last."""


AnyWriterConfig = Annotated[ContrastWriterConfig | EditorWriterConfig, Field(discriminator="type")]
