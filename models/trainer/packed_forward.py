"""Forward of packed rows: log-probs of completions under a policy, and values under a critic.

It works with transformers' causal LMs, with or without adapters.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import Tensor, nn

from coevo.models.losses.vocabulary import LogitScale, TokenLoss, token_logprobs, token_loss
from coevo.models.trainer import trie_attention
from coevo.models.trainer.packing import Packed, PaddedRows, Trie

OWN = "sdpa"
"""Attention function that policies are loaded with."""


class TokenHead(nn.Module):
    """Log-probs and entropies of tokens from hidden states, by the parameters of a model's own output layer.

    ZeRO stage 3 gathers the parameters of a module around its forward and backward pass, so they are used in a module
    of their own.

    Args:
        layer: output layer of a causal LM.
        scale: from its results to logits.
        entropy_gradient: True if entropies carry a gradient.
    """

    def __init__(self, layer: nn.Linear, scale: LogitScale, entropy_gradient: bool) -> None:
        super().__init__()
        self.weight = layer.weight
        self.bias = layer.bias
        self.scale = scale
        self.entropy_gradient = entropy_gradient

    def forward(self, hidden: Tensor, targets: Tensor, loss: TokenLoss | None = None) -> tuple[Tensor, ...]:
        """Log-probs of ``targets`` and entropies, both [tokens], from hidden states, [tokens, hidden].

        With ``loss``, it comes third, and it alone has a gradient.
        """
        layer = hidden, self.weight, self.bias, targets, self.scale
        if loss is None:
            return token_logprobs(*layer, self.entropy_gradient)
        value, logprobs, entropies = token_loss(*layer, loss)
        return logprobs, entropies, value


@dataclass(frozen=True, slots=True)
class Objective:
    """A loss of completions.

    Attributes:
        loss: scalar from log-probs and entropies, both [rows, longest completion].
        by_token: True if the gradient at a token depends on that token alone; the output layer then computes it with
            the log-probs.
    """

    loss: Callable[[Tensor, Tensor], Tensor]
    by_token: bool


class PolicyForward(nn.Module):
    """Log-probs of completions under a causal LM.

    A trie goes through the model's decoder and a ``TokenHead``, padded rows through the whole model as it is.

    Args:
        model: the causal LM.
        temperature: divides the logits.
        entropy_gradient: True if entropies carry a gradient.
    """

    def __init__(self, model: nn.Module, temperature: float, entropy_gradient: bool = False) -> None:
        super().__init__()
        self.model = _uncast(model.eval())  # dropout would make every importance ratio noise
        causal = bare(model)
        scale = scale_of(causal.config, temperature)
        self.head = TokenHead(causal.get_output_embeddings(), scale, entropy_gradient)

    def forward(self, packed: Packed, objective: Objective | None = None) -> tuple[Tensor, ...]:
        """Log-probs of the completions at the temperature and entropies in nats, both [rows, longest completion].

        Columns after the end of a row's completion are undefined. With an objective, its loss comes third, and
        gradients are those of the loss.
        """
        if isinstance(packed, Trie):
            return self._of_trie(packed, objective)
        logprobs, entropies = self._of_rows(packed)
        return (logprobs, entropies) if objective is None else _detached(logprobs, entropies, objective)

    def _of_trie(self, packed: Trie, objective: Objective | None) -> tuple[Tensor, ...]:
        hidden, places = decoded(self.model, packed), packed.places
        if objective is None or not objective.by_token:
            logprobs, entropies = (values[places] for values in self.head(hidden, packed.targets))
            return (logprobs, entropies) if objective is None else _detached(logprobs, entropies, objective)
        loss = objective.loss
        logprobs, entropies, value = self.head(hidden, packed.targets, lambda *of: loss(*(each[places] for each in of)))
        return logprobs[places], entropies[places], value

    def _of_rows(self, packed: PaddedRows) -> tuple[Tensor, Tensor]:
        with _computing(self.model):
            logits = _run(bare(self.model), packed, logits_to_keep=packed.targets.shape[1]).logits.float()
        logprobs = torch.log_softmax(logits / self.head.scale.temperature, dim=-1)
        source = logprobs if self.head.entropy_gradient else logprobs.detach()
        entropies = -(source.exp() * source).sum(-1)
        rows = torch.arange(len(packed.ids), device=packed.ids.device)[:, None]
        return logprobs[rows, packed.columns, packed.targets], entropies[rows, packed.columns]


def _detached(logprobs: Tensor, entropies: Tensor, objective: Objective) -> tuple[Tensor, Tensor, Tensor]:
    return logprobs.detach(), entropies.detach(), objective.loss(logprobs, entropies)


class CriticForward(nn.Module):
    """A causal LM whose output is one number: the value of the state before each token."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = _uncast(model.eval())

    def forward(self, packed: Packed) -> Tensor:
        """Values before each token of the completions, [rows, longest completion]; undefined after a row's end."""
        layer = bare(self.model).get_output_embeddings()
        hidden = decoded(self.model, packed).to(layer.weight.dtype)  # that of adapters is half, the head's float32
        values: Tensor = layer(hidden).float().squeeze(-1)
        return values[packed.places] if isinstance(packed, Trie) else values.gather(1, packed.columns)


def bare(model: Any) -> Any:
    """Causal LM inside a PEFT model, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def decoded(model: nn.Module, packed: Packed) -> Tensor:
    """Final hidden states before the targets: [targets, hidden] of a trie, [rows, longest, hidden] of padded rows."""
    with _computing(model):
        hidden: Tensor = _run(bare(model).get_decoder(), packed).last_hidden_state
    return hidden[0, packed.reads] if isinstance(packed, Trie) else hidden[:, -packed.targets.shape[1] :]


def _computing(model: nn.Module) -> AbstractContextManager[object]:
    """Precision of a policy's computation: adapters, which are float32, compute in half precision if their base does.

    In float32, on cores of a GPU that do nothing else, they take a fifth of an update, and copies of their inputs.
    """
    base = bare(model)
    return torch.autocast(base.device.type, base.dtype, enabled=base is not model and base.dtype != torch.float32)


def _uncast(model: nn.Module) -> nn.Module:
    """The model, whose adapters take their inputs in the precision of the base: autocast casts the weights instead."""
    for layer in model.modules():
        if isinstance(layer, BaseTunerLayer):
            layer.cast_input_dtype_enabled = False
    return model


def _run(model: Any, packed: Packed, **options: Any) -> Any:
    """Output of a transformers model for packed rows."""
    if isinstance(packed, Trie):
        _attend_by(model, trie_attention.NAME)
        return model(
            input_ids=packed.ids[None],
            position_ids=packed.positions[None],
            trie=trie_attention.prepared(packed.paths),
            use_cache=False,
            **options,
        )
    _attend_by(model, OWN)
    return model(
        input_ids=packed.ids, attention_mask=packed.real, position_ids=packed.positions, use_cache=False, **options
    )


def _attend_by(model: Any, name: str) -> None:
    """Set a model's attention function; the backward pass of checkpointed layers needs it as well."""
    # Transformers has no public way to ask for the function, and setting it walks through the whole model.
    if model.config._attn_implementation != name:
        model.set_attn_implementation(name)


def scale_of(config: Any, temperature: float) -> LogitScale:
    """Scale of the logits of a causal LM with this configuration."""
    factor = getattr(config, "logit_scale", None) or 1 / (getattr(config, "logits_scaling", None) or 1)
    return LogitScale(temperature, factor, getattr(config, "final_logit_softcapping", None))
