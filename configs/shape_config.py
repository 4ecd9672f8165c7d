"""Shape of a pretrained model, for estimates before the model is on this machine."""

from typing import Literal, Self

from pydantic import Field, model_validator

from coevo.configs.base import TOKENS, Config


class ShapeConfig(Config):
    """Sizes of a dense decoder, as in its ``config.json``."""

    architecture: Literal["qwen2", "qwen3"]
    """Layer design: ``qwen2`` has biases in its attention, ``qwen3`` normalises queries and keys."""
    vocabulary: int = Field(ge=1, le=2**24)
    """Rows of the embedding (``vocab_size``)."""
    hidden_size: int = Field(ge=8, le=2**16)
    """Width of the residual stream."""
    layers: int = Field(ge=1, le=1024)
    """Transformer blocks (``num_hidden_layers``)."""
    heads: int = Field(ge=1, le=1024)
    """Query heads (``num_attention_heads``)."""
    kv_heads: int = Field(ge=1, le=1024)
    """Key/value heads; must divide ``heads``."""
    head_dim: int = Field(ge=8, le=1024)
    """Dimension of each head."""
    intermediate_size: int = Field(ge=8, le=2**18)
    """Width of the feed-forward layer."""
    max_positions: int = Field(ge=32, le=TOKENS)
    """Maximum sequence length in tokens (``max_position_embeddings``)."""
    tied: bool = False
    """True if the output layer shares the embedding (``tie_word_embeddings``)."""

    @model_validator(mode="after")
    def _divided(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(
                f"kv_heads={self.kv_heads} does not divide heads={self.heads}: see the model's config.json"
            )
        if self.architecture == "qwen2" and self.heads * self.head_dim != self.hidden_size:
            raise ValueError(
                f"heads x head_dim is {self.heads * self.head_dim}: qwen2 has hidden_size={self.hidden_size}"
            )
        return self
