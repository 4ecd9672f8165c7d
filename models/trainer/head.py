"""The output layer of a policy, which gives log-probs of tokens and no logits."""

from typing import Any

from torch import Tensor, nn

from coevo.models.losses.vocabulary import LogitScale, TokenLoss, token_logprobs, token_loss


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


def scale_of(config: Any, temperature: float) -> LogitScale:
    """Scale of the logits of a causal LM with this configuration."""
    factor = getattr(config, "logit_scale", None) or 1 / (getattr(config, "logits_scaling", None) or 1)
    return LogitScale(temperature, factor, getattr(config, "final_logit_softcapping", None))
