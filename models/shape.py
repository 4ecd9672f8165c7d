"""What a policy measures before it is built: parameters and sizes, counted on a model without memory."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, Qwen2Config, Qwen3Config

from configs.errors import CoevoError
from configs.policy import LoraConfig, PolicyConfig, PretrainedPolicyConfig, ScratchPolicyConfig
from configs.shape import ShapeConfig
from models.foreign import check_settings, malformed

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a policy.

    Attributes:
        parameters: all of them, tied ones once, without adapters.
        trainable: those that an update changes: all, or the adapters'.
        rank: of the adapters; 0 for none.
        layers: transformer blocks.
        hidden: width of the residual stream.
        queries: numbers of all query heads of a token.
        keys: numbers of all key heads of a token.
        inner: width of the feed-forward layer.
        vocabulary: outputs.
        positions: tokens that it attends to.
        normed: whether queries and keys are normalised.
        bytes: of one of its weights.
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


def shape_of(policy: PolicyConfig, words: int) -> Shape:
    """The shape of a policy, from its directory where it is on this machine, else from what its settings say.

    Args:
        policy: its settings.
        words: size of the vocabulary of a policy from scratch.

    Raises:
        CoevoError: the model is not on this machine, and its settings do not say its shape; or what they say is none.
    """
    if isinstance(policy, ScratchPolicyConfig):
        return _measured(_scratch(policy, words), "float32", None)
    found = architecture(policy)
    try:
        return _measured(found, policy.dtype, policy.lora)
    except CoevoError:
        raise
    except Exception as error:  # noqa: BLE001  (PyTorch and Transformers raise whatever a wrong size leads to)
        raise malformed(f"{policy.path}: config.json", error) from None


def architecture(policy: PretrainedPolicyConfig) -> Any:
    """The transformers configuration of a pretrained policy. Raises ``CoevoError`` where there is none."""
    found = config_of(policy.path)
    if found is not None:
        return found
    if policy.shape is None:
        raise CoevoError(
            f"policy.path = {policy.path!r} cannot be read, it is not here: name a directory with a causal LM"
        )
    return stated(policy.shape)


def config_of(path: str) -> Any | None:
    """The ``config.json`` of a model on this machine, by directory or hub name; None where it is not here.

    Raises:
        CoevoError: transformers does not know the model or cannot read its settings, or it needs code of its own.
    """
    check_settings(path)
    try:
        return AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError):
        if (Path(path) / "config.json").is_file():
            raise CoevoError(f"{path}/config.json: no model that transformers knows: name another directory") from None
        return None
    except Exception as error:  # noqa: BLE001  (Transformers raises whatever a malformed file leads to)
        raise malformed(f"{path}: config.json", error) from None


def _measured(config: Any, dtype: str, lora: LoraConfig | None) -> Shape:
    text = config.get_text_config()
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    heads = text.num_attention_heads
    size = getattr(text, "head_dim", None) or text.hidden_size // heads
    return Shape(
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
    """Parameters of the adapters that PEFT would put in: two matrices beside each chosen linear layer."""
    head = model.get_output_embeddings()
    linear = {name: part for name, part in model.named_modules() if isinstance(part, nn.Linear)}
    chosen = [part for name, part in linear.items() if _is_target(name, lora.target_modules, part is head)]
    if not chosen:
        raise CoevoError(f"policy.lora.target_modules = {lora.target_modules!r} names no layer: set it to all-linear")
    return sum(lora.r * (part.in_features + part.out_features) for part in chosen)


def _is_target(name: str, targets: str | Collection[str], is_head: bool) -> bool:
    if targets == "all-linear":
        return not is_head
    if isinstance(targets, str):
        return re.fullmatch(targets, name) is not None
    return any(name == target or name.endswith(f".{target}") for target in targets)


def _scratch(policy: ScratchPolicyConfig, words: int) -> Qwen3Config:
    return Qwen3Config(
        vocab_size=words,
        hidden_size=policy.hidden_size,
        intermediate_size=policy.intermediate_size,
        num_hidden_layers=policy.layers,
        num_attention_heads=policy.heads,
        num_key_value_heads=policy.kv_heads,
        head_dim=policy.head_dim,
        max_position_embeddings=policy.max_positions,
        tie_word_embeddings=True,
    )


def stated(shape: ShapeConfig) -> Any:
    """The transformers configuration of a shape."""
    kind = Qwen3Config if shape.architecture == "qwen3" else Qwen2Config
    sizes = {"head_dim": shape.head_dim} if shape.architecture == "qwen3" else {}
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
