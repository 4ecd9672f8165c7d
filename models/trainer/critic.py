"""The critic: a copy of the policy with a scalar output and its own optimizer."""

import copy
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from coevo.configs.update.update_config import UpdateConfig
from coevo.models.losses.aggregation import weights_of
from coevo.models.trainer import deepspeed_engine as deep
from coevo.models.trainer import ranks
from coevo.models.trainer.checkpoint import load_optimizer, save_optimizer, save_trained
from coevo.models.trainer.packed_forward import CriticForward, bare
from coevo.models.trainer.trie_attention import checkpoint_layers
from coevo.models.trainer.update_batch import Batch, mean, minibatches
from coevo.records.draws import Key, extend

WEIGHTS = "critic.safetensors"
"""File of the critic in its directory; the optimizer's state is in the same directory."""


class Critic:
    """Values states, and learns to.

    Args:
        engine: over ``CriticForward``.
        config: the critic's optimizer, the loss's aggregation and the memory budget.
    """

    def __init__(self, engine: Any, config: UpdateConfig) -> None:
        assert config.critic is not None
        self._engine = engine
        self._config = config
        self._critic = config.critic
        self._share = deep.Share(engine, config)

    def values(self, batch: Batch) -> Tensor:
        """Value of the state before each token, [rows, longest]; undefined after a row's end."""
        return self._share.forwarded(batch, self._engine)

    def update(self, batch: Batch, key: Key) -> dict[str, float]:
        """Train on the batch in several passes; ``key`` decides the order of minibatches.

        Returns:
            Means over the minibatches of the loss and of the gradient's norm; 0 without minibatches.
        """
        optimizer = self._critic.optimizer
        losses: list[float] = []
        norms: list[float] = []
        for epoch in range(optimizer.epochs):
            for rows in minibatches(batch, optimizer.minibatches, extend(key, "critic", epoch)):
                losses.append(self._accumulate(batch, rows))
                norms.append(deep.step(self._engine))
        return {"critic_loss": mean(losses), "critic_grad_norm": mean(norms)}

    def save(self, directory: Path) -> None:
        """Write the weights and the optimizer's state."""
        save_optimizer(self._engine, directory)
        save_trained(self._engine.module, directory / WEIGHTS)

    def _accumulate(self, batch: Batch, rows: list[int]) -> float:
        loss = self._config.loss
        importance = torch.zeros(batch.mask.shape)
        width = loss.width or batch.mask.shape[1]
        importance[rows] = weights_of(batch.mask[rows], batch.episodes[rows], width, loss.aggregation)
        losses = []
        for micro, counts in self._share.micro_batches(batch, rows):
            part = self._loss(batch, micro, importance * counts)
            deep.backward(self._engine, part)
            if counts:
                losses.append(float(part.detach()))
        return sum(ranks.in_order(losses))

    def _loss(self, batch: Batch, rows: list[int], importance: Tensor) -> Tensor:
        values = self._engine(self._share.packed(batch, rows))
        width = values.shape[1]

        def of(given: Tensor) -> Tensor:
            return given[rows, :width].to(values.device)

        said = (values, of(batch.values), of(batch.returns))
        now, old, returns = (torch.where(of(batch.mask), each, 0.0) for each in said)
        return (of(importance) * value_loss(now, old, returns, self._critic.clip)).sum()


def start(policy: nn.Module, config: UpdateConfig, directory: Path | None = None) -> Critic:
    """Load the critic from a directory, or create one, whose values are 0 until it has learned.

    Args:
        policy: the model that the critic copies; it stays unchanged.
        config: with a critic.
        directory: written by ``Critic.save`` for a policy of the same architecture; None for a new critic.
    """
    assert config.critic is not None
    model = CriticForward(with_scalar_head(copy.deepcopy(policy)))
    if config.deepspeed.activation_checkpointing:
        checkpoint_layers(model)
    if directory is not None:
        _load_weights(model, directory / WEIGHTS)  # before ZeRO copies them
    engine = deep.start(model, config.critic.optimizer, config.deepspeed)
    if directory is not None:
        load_optimizer(engine, directory)
    return Critic(engine, config)


@torch.no_grad()
def _load_weights(model: nn.Module, path: Path) -> None:
    with safe_open(path, framework="pt") as saved:
        for name, parameter in deep.trainable(model).items():
            parameter.copy_(saved.get_tensor(name))


def with_scalar_head(model: Any) -> nn.Module:
    """Replace the output of a causal LM, or of a PEFT model around one, by one number, at first 0; in place."""
    causal = bare(model)
    head = nn.Linear(causal.get_output_embeddings().in_features, 1)
    for parameter in head.parameters():
        nn.init.zeros_(parameter)
    causal.set_output_embeddings(head)
    return model  # type: ignore[no-any-return]


def value_loss(values: Tensor, old: Tensor, returns: Tensor, clip: float | None) -> Tensor:
    """Half the greater of two squared errors: of the value, and of the value clipped to ``old`` +- ``clip``.

    Args:
        values: of the state before each token, with gradient.
        old: the critic's values when the advantages were computed.
        returns: the critic's targets.
        clip: maximum distance from ``old`` that counts; None for no limit.

    Returns:
        Loss per token, in the shape of ``values``.
    """
    free = (values - returns).square()
    if clip is None:
        return free / 2
    kept = torch.clamp(values, old - clip, old + clip)
    return torch.maximum(free, (kept - returns).square()) / 2
