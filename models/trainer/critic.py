"""The critic: a copy of the policy whose output is one number, with an optimizer of its own."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from configs.update import UpdateConfig
from models.losses.aggregation import weights_of
from models.losses.value import value_loss
from models.trainer import engine as deep
from models.trainer import ranks
from models.trainer.activations import checkpoint_layers
from models.trainer.batch import Batch, minibatches
from models.trainer.checkpoint import load_optimizer, save_optimizer, weights
from models.trainer.forward import SharedValues
from models.trainer.packing import Packed, pack_rows
from records.draws import Key, extend

WEIGHTS = "critic.safetensors"
"""The critic's file in its directory; the optimizer's state is beside it."""


class Critic:
    """Values states, and learns to.

    Args:
        engine: over ``SharedValues``.
        config: the critic's optimizer, the loss's aggregation and the memory budget.
    """

    def __init__(self, engine: Any, config: UpdateConfig) -> None:
        assert config.critic is not None
        self._engine = engine
        self._config = config
        self._critic = config.critic
        self._least = ranks.least_segment(config.deepspeed.zero_stage)

    @torch.no_grad()
    def values(self, batch: Batch) -> Tensor:
        """Value of the state before each token, [rows, longest]; without meaning past a row's end."""
        values = torch.zeros(batch.mask.shape)
        for rows, counts in ranks.mine(self._rounds(batch, list(range(len(batch))))):
            said = self._engine(self._packed(batch, rows))
            if counts:
                values[rows, : said.shape[1]] = said.cpu()
        return ranks.summed(values)

    def update(self, batch: Batch, key: Key) -> dict[str, float]:
        """Passes over the batch; ``key`` decides the order of minibatches.

        Returns:
            Means over the minibatches of the loss and of the gradient's norm; 0 where nothing was learned from.
        """
        optimizer = self._critic.optimizer
        losses: list[float] = []
        norms: list[float] = []
        for epoch in range(optimizer.epochs):
            for rows in minibatches(batch, optimizer.minibatches, extend(key, "critic", epoch)):
                losses.append(self._accumulate(batch, rows))
                norms.append(deep.step(self._engine))
        return {"critic_loss": _mean(losses), "critic_grad_norm": _mean(norms)}

    def save(self, directory: Path) -> None:
        """Write the weights and the optimizer's state."""
        save_optimizer(self._engine, directory)
        kept = weights(deep.trainable(self._engine.module))
        if ranks.rank() == 0:
            save_file(kept, directory / WEIGHTS)

    def _accumulate(self, batch: Batch, rows: list[int]) -> float:
        loss = self._config.loss
        importance = torch.zeros(batch.mask.shape)
        width = loss.width or batch.mask.shape[1]
        importance[rows] = weights_of(batch.mask[rows], batch.episodes[rows], width, loss.aggregation)
        losses = []
        for micro, counts in ranks.mine(self._rounds(batch, rows)):
            part = self._loss(batch, micro, importance * counts)
            deep.backward(self._engine, part)
            if counts:
                losses.append(float(part.detach()))
        return sum(ranks.in_order(losses))

    def _loss(self, batch: Batch, rows: list[int], importance: Tensor) -> Tensor:
        values = self._engine(self._packed(batch, rows))
        width = values.shape[1]

        def of(given: Tensor) -> Tensor:
            return given[rows, :width].to(values.device)

        said = (values, of(batch.values), of(batch.returns))
        now, old, returns = (torch.where(of(batch.mask), each, 0.0) for each in said)
        return (of(importance) * value_loss(now, old, returns, self._critic.clip)).sum()

    def _rounds(self, batch: Batch, rows: list[int]) -> list[list[int]]:
        return ranks.rounds(batch, rows, self._config.deepspeed.tokens)

    def _packed(self, batch: Batch, rows: list[int]) -> Packed:
        return pack_rows(batch, rows, self._least).to(self._engine.device)


def start(policy: nn.Module, config: UpdateConfig, directory: Path | None = None) -> Critic:
    """The critic that was saved to a directory, or a new one, which says 0 of every state until it has learned.

    Args:
        policy: what the critic is a copy of; it stays as it is.
        config: with a critic.
        directory: what ``Critic.save`` wrote for a policy of the same architecture.
    """
    assert config.critic is not None
    model = SharedValues(with_scalar_head(copy.deepcopy(policy)))
    if config.deepspeed.activation_checkpointing:
        checkpoint_layers(model)
    if directory is not None:
        _load_weights(model, directory / WEIGHTS)  # before ZeRO makes its own copy of them
    engine = deep.start(model, config.critic.optimizer, config.deepspeed)
    if directory is not None:
        load_optimizer(engine, directory)
    return Critic(engine, config)


@torch.no_grad()
def _load_weights(model: nn.Module, path: Path) -> None:
    saved = load_file(path)
    for name, parameter in deep.trainable(model).items():
        parameter.copy_(saved[name])


def with_scalar_head(model: Any) -> nn.Module:
    """A causal LM, or a PEFT model around one, whose output is made one number, at first 0; changed in place."""
    bare = model.get_base_model() if hasattr(model, "get_base_model") else model
    head = nn.Linear(bare.get_output_embeddings().in_features, 1)
    for parameter in head.parameters():
        nn.init.zeros_(parameter)
    bare.set_output_embeddings(head)
    return model  # type: ignore[no-any-return]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
