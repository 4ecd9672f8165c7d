"""Log-probs and entropies of tokens from hidden states, in chunks: no tensor has tokens times vocabulary values.

``token_loss`` computes a loss that is a sum over tokens together with its gradients, so the logits of a chunk are
computed once. For other losses the backward pass of ``token_logprobs`` computes them again. The gradient of a trained
output layer is summed over all chunks in one buffer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from coevo.models.capacity.footprint import VALUES


@dataclass(frozen=True, slots=True)
class LogitScale:
    """From the output layer's results to logits: ``cap * tanh(factor * x / cap) / temperature``.

    Attributes:
        temperature: divides the logits.
        factor: the model's own factor (Granite, Cohere).
        cap: the model's bound of the absolute logit (Gemma 2); None for no bound.
    """

    temperature: float
    factor: float = 1.0
    cap: float | None = None


def token_logprobs(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, scale: LogitScale, entropy_gradient: bool
) -> tuple[Tensor, Tensor]:
    """Log-probs of ``targets`` and entropies of their distributions in nats, both [tokens] in float32.

    Args:
        hidden: final hidden state before each target, [tokens, hidden].
        weight: of the output layer, [vocabulary, hidden].
        bias: of the output layer, [vocabulary]; None without one.
        targets: token ids, [tokens].
        scale: from the layer's results to logits.
        entropy_gradient: True if entropies carry a gradient.
    """
    logprobs, entropies = _TokenLogprobs.apply(hidden, weight, bias, targets, scale)  # type: ignore[no-untyped-call]
    return logprobs, entropies if entropy_gradient else entropies.detach()


TokenLoss = Callable[[Tensor, Tensor], Tensor]
"""A scalar from log-probs and entropies, both [tokens]; its gradient at a token depends on that token alone."""


def token_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, scale: LogitScale, loss: TokenLoss
) -> tuple[Tensor, Tensor, Tensor]:
    """A loss with gradient, and without gradient the log-probs and entropies in nats that it is a sum over.

    Args:
        hidden: final hidden state before each target, [tokens, hidden].
        weight: of the output layer, [vocabulary, hidden].
        bias: of the output layer, [vocabulary]; None without one.
        targets: token ids, [tokens].
        scale: from the layer's results to logits.
        loss: from log-probs and entropies; called once per chunk, when those of later chunks are still 0.
    """
    return _TokenLoss.apply(hidden, weight, bias, targets, scale, loss)  # type: ignore[no-any-return, no-untyped-call]


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, scale: LogitScale
    ) -> tuple[Tensor, Tensor]:
        logprobs, entropies, norms = (hidden.new_empty(len(hidden), dtype=torch.float32) for _ in range(3))
        for part in _parts(hidden, weight):
            logits = _logits(hidden[part], weight, bias, scale)
            norms[part], entropies[part] = _moments(logits)
            logprobs[part] = logits.gather(-1, targets[part, None]).squeeze(-1) - norms[part]
        ctx.scale = scale
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(hidden, weight, bias, targets, norms, entropies)
        return logprobs, entropies

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_logprobs: Tensor | None, of_entropies: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, norms, entropies = ctx.saved_tensors
        made = _Gradients.begin(hidden, weight, bias, ctx.needs_input_grad)
        for part in _parts(hidden, weight):
            logits = _logits(hidden[part], weight, bias, ctx.scale)
            given = [None if it is None else it[part, None] for it in (of_logprobs, of_entropies)]
            of_logits = _backward(logits, targets[part, None], norms[part, None], entropies[part, None], *given)
            made.add(part, hidden, weight, _unscaled(of_logits, logits, ctx.scale))
        return made.hidden, made.weight, made.bias, None, None


class _TokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        scale: LogitScale,
        loss: TokenLoss,
    ) -> tuple[Tensor, Tensor, Tensor]:
        logprobs, entropies = (hidden.new_zeros(len(hidden), dtype=torch.float32) for _ in range(2))
        made = _Gradients.begin(hidden, weight, bias, ctx.needs_input_grad)
        for part in _parts(hidden, weight):
            logits = _logits(hidden[part], weight, bias, scale)
            norms, entropies[part] = _moments(logits)
            logprobs[part] = logits.gather(-1, targets[part, None]).squeeze(-1) - norms
            given = [None if it is None else it[part, None] for it in _slopes(loss, logprobs, entropies)]
            of_logits = _backward(logits, targets[part, None], norms[:, None], entropies[part, None], *given)
            made.add(part, hidden, weight, _unscaled(of_logits, logits, scale))
        ctx.made = made
        ctx.mark_non_differentiable(logprobs, entropies)
        return loss(logprobs, entropies), logprobs, entropies

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        made, ctx.made = ctx.made, None  # autograd takes over what nobody else holds
        for gradient in (made.hidden, made.weight, made.bias):
            if gradient is not None:
                gradient.mul_(of_loss)
        return made.hidden, made.weight, made.bias, None, None, None


@dataclass(slots=True)
class _Gradients:
    """Gradients of hidden states and, if they are trained, of weight and bias."""

    hidden: Tensor
    weight: Tensor | None
    bias: Tensor | None

    @classmethod
    def begin(cls, hidden: Tensor, weight: Tensor, bias: Tensor | None, needed: Sequence[bool]) -> "_Gradients":
        of_weight = torch.zeros_like(weight) if needed[1] else None
        of_bias = torch.zeros_like(bias) if bias is not None and needed[2] else None
        return cls(torch.empty_like(hidden), of_weight, of_bias)

    def add(self, part: slice, hidden: Tensor, weight: Tensor, of_results: Tensor) -> None:
        """Add those of a chunk, from the gradient of the output layer's results, [tokens of the chunk, vocabulary]."""
        outer = of_results.to(weight.dtype)
        torch.mm(outer, weight, out=self.hidden[part])
        if self.weight is not None:
            self.weight.addmm_(outer.T, hidden[part])
        if self.bias is not None:
            self.bias += outer.sum(0)


def _slopes(loss: TokenLoss, logprobs: Tensor, entropies: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of a loss at log-probs and entropies, None where it does not depend on them."""
    with torch.enable_grad():
        leaves = logprobs.detach().requires_grad_(), entropies.detach().requires_grad_()
        return torch.autograd.grad(loss(*leaves), leaves, allow_unused=True)


def _parts(hidden: Tensor, weight: Tensor) -> list[slice]:
    size = max(VALUES // len(weight), 1)
    return [slice(start, start + size) for start in range(0, len(hidden), size)]


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None, scale: LogitScale) -> Tensor:
    logits = functional.linear(hidden, weight, bias).float()
    if scale.cap is None:
        return logits.mul_(scale.factor / scale.temperature)
    return logits.mul_(scale.factor / scale.cap).tanh_().mul_(scale.cap / scale.temperature)


def _moments(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithm of the sum of exponentials, and entropy, both [tokens]."""
    most = logits.amax(-1, keepdim=True)
    masses = (logits - most).exp_()
    total = masses.sum(-1)
    norms = most.squeeze(-1) + total.log()
    return norms, norms - masses.mul_(logits).sum(-1) / total


def _backward(
    logits: Tensor,
    targets: Tensor,
    norms: Tensor,
    entropies: Tensor,
    of_logprobs: Tensor | None,
    of_entropies: Tensor | None,
) -> Tensor:
    """Gradient of the logits: ``g (onehot - p)`` of log-probs and ``-g p (log p + entropy)`` of entropies."""
    gradient = (logits - norms).exp_()
    if of_entropies is not None:
        factors = (logits - norms + entropies).mul_(-of_entropies)
        gradient.mul_(factors if of_logprobs is None else factors.sub_(of_logprobs))
    elif of_logprobs is not None:
        gradient.mul_(-of_logprobs)
    return gradient if of_logprobs is None else gradient.scatter_add_(-1, targets, of_logprobs)


def _unscaled(gradient: Tensor, logits: Tensor, scale: LogitScale) -> Tensor:
    """Gradient of the output layer's results, from that of the logits; in place."""
    if scale.cap is not None:
        gradient.mul_(logits.mul_(scale.temperature / scale.cap).square_().neg_().add_(1))
    return gradient.mul_(scale.factor / scale.temperature)
