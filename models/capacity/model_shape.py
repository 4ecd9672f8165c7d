"""Shape of a policy before it is built: parameters and sizes, counted on a model without memory."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from coevo.configs.base import MAX_TOKENS
from coevo.configs.policy_config import (
    EndpointPolicyConfig,
    LoraConfig,
    PolicyConfig,
    PretrainedPolicyConfig,
    ScratchPolicyConfig,
    ShapeConfig,
)
from coevo.models.policy.foreign import absent, check_settings, malformed
from coevo.utilities.errors import CoevoError

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes per number."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a policy.

    Attributes:
        parameters: all parameters, tied ones once, without adapters.
        trainable: parameters that an update changes: all, or the adapters'.
        rank: rank of the adapters; 0 for none.
        layers: transformer blocks.
        hidden: width of the residual stream.
        queries: numbers of all query heads per token.
        keys: numbers of all key heads per token.
        inner: width of the feed-forward layer.
        vocabulary: outputs.
        positions: maximum sequence length in tokens.
        normed: True if queries and keys are normalised.
        bytes: bytes per weight.
    """

    parameters: int
    trainable: int
    rank: int
    layers: int
    hidden: int
    queries: int
    keys: int
    inner: int
    vocabulary: int
    positions: int
    normed: bool
    bytes: int


NOTHING = ModelShape(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, False, 4)
"""Shape of a model without weights here."""


def shape_of(policy: PolicyConfig, words: int) -> ModelShape:
    """Shape of a policy, from its directory if that is on this machine, else from its settings.

    Args:
        policy: its settings.
        words: size of the vocabulary of a policy from scratch.

    Raises:
        CoevoError: the model is not on this machine, and its settings give no shape; or the given shape is invalid.
    """
    if isinstance(policy, ScratchPolicyConfig):
        return _of_scratch(policy, words)
    if isinstance(policy, EndpointPolicyConfig):
        return replace(NOTHING, positions=policy.context or MAX_TOKENS)
    found = architecture(policy)
    try:
        return _measured(found, policy.dtype, policy.lora)
    except CoevoError:
        raise
    except Exception as error:  # noqa: BLE001  (PyTorch and Transformers raise whatever a wrong size leads to)
        raise malformed(f"{policy.path}: config.json", error) from None


@cache
def _of_scratch(policy: ScratchPolicyConfig, words: int) -> ModelShape:
    from coevo.models.policy.policy import scratch_config

    return _measured(scratch_config(policy, words), "float32", None)


def architecture(policy: PretrainedPolicyConfig) -> Any:
    """Transformers configuration of a pretrained policy. Raises ``CoevoError`` if none is found."""
    found = config_of(policy.path)
    if found is not None:
        return found
    if policy.shape is None:
        raise absent(policy.path)
    return stated(policy.shape)


def config_of(path: str) -> Any | None:
    """``config.json`` of a model on this machine, by directory or hub name; None if it is not here.

    Raises:
        CoevoError: transformers does not know the model or cannot read its settings, or it needs code of its own.
    """
    from transformers import AutoConfig

    check_settings(path)
    try:
        return AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError):
        if (Path(path) / "config.json").is_file():
            raise CoevoError(f"{path}/config.json: unknown to transformers: name another directory") from None
        return None
    except Exception as error:  # noqa: BLE001  (Transformers raises whatever a malformed file leads to)
        raise malformed(f"{path}: config.json", error) from None


def _measured(config: Any, dtype: str, lora: LoraConfig | None) -> ModelShape:
    import torch
    from transformers import AutoModelForCausalLM

    text = config.get_text_config()
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    heads = text.num_attention_heads
    size = getattr(text, "head_dim", None) or text.hidden_size // heads
    return ModelShape(
        parameters=(parameters := sum(parameter.numel() for parameter in model.parameters())),
        trainable=parameters if lora is None else _adapters(model, lora),
        rank=0 if lora is None else lora.r,
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        queries=heads * size,
        keys=(getattr(text, "num_key_value_heads", None) or heads) * size,
        inner=text.intermediate_size,
        vocabulary=text.vocab_size,
        positions=text.max_position_embeddings,
        normed=any(name.endswith("q_norm") for name, _ in model.named_modules()),
        bytes=SIZES[dtype],
    )


def _adapters(model: Any, lora: LoraConfig) -> int:
    """Number of parameters of PEFT's adapters: two matrices for each chosen linear layer."""
    from torch import nn

    head, words = model.get_output_embeddings(), model.get_input_embeddings()
    layers = {name: part for name, part in model.named_modules() if isinstance(part, nn.Linear) or part is words}
    chosen = [part for name, part in layers.items() if _is_target(name, lora.target_modules, part in (head, words))]
    if not chosen:
        raise CoevoError(f"policy.lora.target_modules = {lora.target_modules!r} names no layer: set it to all-linear")
    if any(part in (head, words) for part in chosen):
        raise CoevoError(
            f"policy.lora.target_modules = {lora.target_modules!r} has the embeddings or the output layer: leave it out"
        )
    return sum(lora.r * (part.in_features + part.out_features) for part in chosen)


def _is_target(name: str, targets: str | Collection[str], is_outer: bool) -> bool:
    if targets == "all-linear":
        return not is_outer
    if isinstance(targets, str):
        return re.fullmatch(targets, name) is not None
    return any(name == target or name.endswith(f".{target}") for target in targets)


def stated(shape: ShapeConfig) -> Any:
    """Transformers configuration of a shape."""
    from transformers import LlamaConfig, Qwen2Config, Qwen3Config

    kind = {"qwen2": Qwen2Config, "qwen3": Qwen3Config, "llama": LlamaConfig}[shape.architecture]
    sizes = {} if shape.architecture == "qwen2" else {"head_dim": shape.head_dim}
    return kind(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.max_positions,
        tie_word_embeddings=shape.tied,
        **sizes,
    )
