"""The policy: a small model from scratch, a pretrained causal LM or a model behind an endpoint, and its warm start."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from coevo.configs.bank.writer_model_config import EndpointAccess, SpendingConfig
from coevo.configs.base import (
    MAX_COUNT,
    MAX_FACTOR,
    MAX_PROCESSES,
    MAX_ROWS,
    MAX_SECONDS,
    MAX_TOKENS,
    Config,
    FromAnywhere,
)
from coevo.configs.trust_settings import Trusted


class ShapeConfig(Config):
    """Sizes of a dense decoder, as in its ``config.json``."""

    architecture: Literal["qwen2", "qwen3", "llama"]
    """Layer design: ``qwen2`` has biases in its attention, ``qwen3`` normalises queries and keys, ``llama`` neither."""
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
    max_positions: int = Field(ge=32, le=MAX_TOKENS)
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


class ScratchPolicyConfig(Config):
    """A model of Qwen3 architecture with random weights and its own word-level tokenizer."""

    type: Literal["scratch"] = "scratch"
    """Built from these numbers; nothing is downloaded."""
    hidden_size: int = Field(default=96, ge=8, le=2**16)
    """Width of the residual stream."""
    layers: int = Field(default=2, ge=1, le=512)
    """Transformer blocks."""
    heads: int = Field(default=3, ge=1, le=512)
    """Query heads."""
    kv_heads: int = Field(default=3, ge=1, le=512)
    """Key/value heads; must divide ``heads``."""
    head_dim: int = Field(default=32, ge=8, le=1024)
    """Dimension of each head (vLLM accepts 32, but not 24)."""
    intermediate_size: int = Field(default=192, ge=8, le=2**18)
    """Width of the feed-forward layer."""
    rope_theta: float = Field(default=100.0, gt=1, le=1e12)
    """Base of the rotary positions; small, since the policy reads a lesson within a few tokens of a short prompt."""
    init_std: float = Field(default=0.05, gt=0, le=100)
    """Standard deviation of the initial weights."""
    max_positions: int = Field(default=512, ge=32, le=MAX_TOKENS)
    """Maximum sequence length in tokens."""

    @model_validator(mode="after")
    def _divided(self) -> Self:
        if self.heads % self.kv_heads:
            remedy = f"set policy.kv_heads={self.heads}"
            raise ValueError(f"kv_heads={self.kv_heads} does not divide heads={self.heads}: {remedy}")
        return self


class LoraConfig(Config):
    """Low-rank adapters instead of full weights."""

    r: int = Field(default=64, ge=1, le=2**14)
    """Rank."""
    alpha: float = Field(default=64, gt=0, le=MAX_FACTOR)
    """Scale numerator."""
    target_modules: str | Annotated[tuple[str, ...], Field(max_length=MAX_PROCESSES)] = "all-linear"
    """Modules that get an adapter, as PEFT names them."""


class PretrainedPolicyConfig(Config):
    """Any causal LM by name or path, with its own tokenizer and chat template."""

    type: Literal["pretrained"]
    """Loaded with transformers."""
    path: Annotated[str, Trusted("loads the model there"), FromAnywhere]
    """Directory or hub name of model and tokenizer."""
    lora: LoraConfig | None = None
    """Adapters to train; null trains the full weights."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of the weights in training."""
    shape: ShapeConfig | None = Field(default=None, exclude_if=lambda shape: shape is None)
    """Sizes for estimates before the model is on this machine; the model's own ``config.json`` takes precedence."""


class EndpointPolicyConfig(SpendingConfig, EndpointAccess):
    """A model behind an endpoint, without weights here: it plays and writes, and nothing trains it."""

    section: ClassVar[str] = "policy"
    type: Literal["endpoint"]
    """Asked over HTTP, with OpenAI's chat completions."""
    seconds: float = Field(default=3600.0, gt=0, le=MAX_SECONDS)
    """Seconds for the answers of one turn, pauses included; then the run stops, and can be resumed."""
    reuse: bool = False
    """Ask identical requests once in the whole run, and give each the same answer; false draws an answer for each."""


PolicyConfig = Annotated[
    ScratchPolicyConfig | PretrainedPolicyConfig | EndpointPolicyConfig, Field(discriminator="type")
]


class WarmStartConfig(Config):
    """Cloning of expert episodes from other worlds, until the policy reads its prompt and writes what it is taught."""

    steps: int = Field(default=400, ge=0, le=MAX_COUNT)
    """Maximum number of optimizer steps; 0 leaves the policy unchanged."""
    episodes: int = Field(default=24, ge=1, le=MAX_ROWS)
    """Expert episodes per step, each of a fresh world."""
    drills: int = Field(default=16, ge=0, le=MAX_ROWS)
    """Recitation drills per step: repeat lessons in another order."""
    reflections: int = Field(default=0, ge=0, le=MAX_ROWS, exclude_if=lambda count: count == 0)
    """Reflections on expert episodes per step, with the answers of a teacher (``bank.writer.form: words``)."""
    predictions: Literal["true", "random"] = Field(default="true", exclude_if=lambda kind: kind == "true")
    """Outcome that the taught reflections predict: that of the episode, or a random one; ``update.writer`` then has to
    teach it.
    """
    lessons: float = Field(default=1.0, gt=0, le=1, exclude_if=lambda share: share == 1)
    """Probability with which a taught reflection tells a lesson; below 1 the choice is left to ``update.writer``."""
    asides: float = Field(default=0.0, ge=0, le=1, exclude_if=lambda share: share == 0)
    """Probability with which a taught reflection tells a line that is no lesson: an action and its answer. Above 0 the
    choice of lines is left to ``update.writer``.
    """
    lr: float = Field(default=5e-3, gt=0, le=100)
    """Learning rate after warm-up (Muon on matrices, AdamW on the rest)."""
    warmup: int = Field(default=20, ge=0, le=MAX_COUNT)
    """Steps of linear learning-rate warm-up."""
    ema: float = Field(default=0.95, ge=0, lt=1)
    """Decay of the weight average, which is probed and becomes the policy."""
    clip: float = Field(default=1.0, gt=0, le=MAX_FACTOR)
    """Maximum gradient norm."""
    probe_every: int = Field(default=25, ge=1, le=MAX_COUNT)
    """Steps between reading probes."""
    probe_tasks: int = Field(default=192, ge=8, le=MAX_ROWS)
    """Number of tasks of another world that a probe plays."""
    read: float = Field(default=0.75, ge=0, le=1)
    """Success with the right lessons from which cloning may stop."""
    margin: float = Field(default=0.5, ge=0, le=1)
    """Success above that with wrong lessons from which cloning may stop."""
    write: float = Field(default=0.9, ge=0, le=1, exclude_if=lambda share: share == 0.9)
    """Share of reflections as its teacher gives them, word for word, from which cloning may stop. What is drawn does
    not count: random predictions, and with ``asides`` or ``lessons`` below 1 the steps that have a line, hence numbers.
    """
