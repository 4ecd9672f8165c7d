"""State of the trainer child: one run's policy, its frozen reference, its critic and their optimizers.

The critic is a copy of the policy with a scalar output.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional

from coevo.configs.update.update_config import UpdateConfig
from coevo.models.losses.aggregation import weights_of
from coevo.models.policy import policy as policies
from coevo.models.trainer import deepspeed_engine, ranks
from coevo.models.trainer import deepspeed_engine as deep
from coevo.models.trainer.checkpoint import load_optimizer, load_policy, save_optimizer, save_trained, whole
from coevo.models.trainer.learner import Learner
from coevo.models.trainer.packed_forward import CriticForward, PolicyForward, bare
from coevo.models.trainer.packing import PaddedRows, pack_rows, pack_trie, tries
from coevo.models.trainer.ranks import rank
from coevo.models.trainer.reference_policy import load_reference
from coevo.models.trainer.samples import Scores, write_scores
from coevo.models.trainer.trie_attention import checkpoint_layers
from coevo.models.trainer.update_batch import Batch, mean, minibatches, read
from coevo.records.draws import Key, extend, key
from coevo.utilities.errors import CoevoError

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


def start_critic(policy: nn.Module, config: UpdateConfig, directory: Path | None = None) -> Critic:
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


CRITIC = "critic"
"""Folder of the critic in the optimizer's directory."""
MAX_COMPARED_ROWS: Final = 8
"""Maximum number of rows that are compared."""
MAX_FLOAT32_DIFFERENCE: Final = 1e-4
"""Maximum difference of a log-prob in float32, in nats."""
HALF_PRECISION_DIFFERENCE: Final = (0.02, 0.1)
"""Mean difference of log-probs that half precision always has, and the most that it may have, in nats."""
NOISE: Final = 2.0
"""Mean difference allowed between these, as a multiple of what one column of padding makes: the deeper a model, the
more its rounding adds up (random weights on a GPU: 0.007 nats at 0.6B parameters, 0.03 at 4B).
"""


class TrainingSession:
    """A policy in training, in a process that has joined its group; its methods are the parent's requests.

    Args:
        config: JSON of the ``UpdateConfig``.
        temperature: divides the logits.
        threads: CPU threads per tensor operation.
        policy: directory of the policy to train.
        reference: directory of the frozen policy.
        optimizer: directory of the optimizer's state; empty to start afresh.
    """

    def __init__(
        self, *, config: str, temperature: float, threads: int, policy: str, reference: str, optimizer: str
    ) -> None:
        settings = UpdateConfig.model_validate_json(config)
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(True, warn_only=settings.deepspeed.device == "cuda")  # some cannot be
        # Otherwise every step fills DeepSpeed's reduction buffers, gigabytes of them.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        self._policy = load_policy(Path(policy))
        self._settings = settings
        saved = Path(optimizer) / CRITIC
        known = saved if optimizer and saved.is_dir() else None  # a run may get its critic later
        self._critic = start_critic(self._policy.model, settings, known) if settings.critic else None
        module = PolicyForward(self._policy.model, temperature, settings.loss.entropy_coefficient > 0)
        if settings.deepspeed.activation_checkpointing:
            checkpoint_layers(module)
        self._engine = deepspeed_engine.start(module, settings.optimizer, settings.deepspeed)
        if optimizer:
            load_optimizer(self._engine, Path(optimizer))
        frozen = load_reference(Path(reference), self._engine, temperature, settings.deepspeed)
        self._learner = Learner(self._engine, frozen, settings)
        self._checked = settings.packing == "rows"

    def update(self, batch: str, key_parts: list[int | str], answers: str = "") -> dict[str, float]:
        """Run one update of policy and critic from a file of samples, and from one of a writer's answers if named."""
        samples, draws = self._read(batch), key(*key_parts)
        metrics = self._learner.update(samples, draws, self._read(answers) if answers else None)
        return metrics | (self._critic.update(samples, draws) if self._critic else {})

    def update_critic(self, batch: str, key_parts: list[int | str]) -> dict[str, float]:
        """Run one update of the critic only."""
        assert self._critic is not None
        return self._critic.update(self._read(batch), key(*key_parts))

    def score(self, batch: str, scores: str) -> None:
        """Write the inputs that the configured advantages need for a file of samples."""
        samples = self._read(batch)
        reference, values = [], []
        if self._settings.loss.kl_in == "reward":
            reference = _unpadded(self._learner.reference_logprobs(samples), samples)
        if self._critic:
            values = _unpadded(self._critic.values(samples), samples)
        if rank() == 0:
            write_scores(Path(scores), Scores(reference, values), len(samples))

    def save(self, policy: str, optimizer: str) -> None:
        """Write the policy's directory and the directory of the optimizer and the critic."""
        policies.save(self._policy, Path(policy), whole, writes=rank() == 0)
        save_optimizer(self._engine, Path(optimizer))
        if self._critic:
            self._critic.save(Path(optimizer) / CRITIC)

    def _read(self, batch: str) -> Batch:
        """Read samples; check the packing with the first ones."""
        samples = read(Path(batch))
        if len(samples) and not self._checked:
            check_trie(self._engine, samples, self._settings.deepspeed.tokens)
            self._checked = True
        return samples


def _unpadded(values: Tensor, batch: Batch) -> list[NDArray[np.float64]]:
    return [row[real].double().numpy() for row, real in zip(values, batch.mask, strict=True)]


@torch.no_grad()
def check_trie(engine: Any, batch: Batch, tokens: int) -> None:
    """Compare the first micro-batch with some of its rows one by one, in the model's own attention and output layer.

    Args:
        engine: over a ``PolicyForward``.
        batch: at least one row.
        tokens: maximum tokens per micro-batch.

    Raises:
        CoevoError: the log-probs differ, or the model has no forward pass for a trie.
    """
    micro = tries(batch, range(len(batch)), tokens)[0]
    chosen = np.unique(np.linspace(0, len(micro) - 1, MAX_COMPARED_ROWS).astype(int)).tolist()
    kind = bare(engine.module.model).config.model_type
    packed = _of_trie(engine, batch, micro, kind)
    rows = [pack_rows(batch, [micro[index]]).to(engine.device) for index in chosen]
    single = [engine(row)[0][0] for row in rows]
    gaps = _gaps([packed[index] for index in chosen], single)
    if _half(engine.module):
        noise = _gaps([engine(_padded(row))[0][0] for row in rows], single)
        _judge(gaps.mean(), allowed(noise), "on average", kind)
    else:
        _judge(gaps.max(), MAX_FLOAT32_DIFFERENCE, "at most", kind)


def allowed(noise: Tensor) -> float:
    """Mean difference that half precision may have, in nats, where one column of padding changes log-probs by these."""
    return float((NOISE * noise.mean()).clamp(*HALF_PRECISION_DIFFERENCE))


def _of_trie(engine: Any, batch: Batch, micro: list[int], kind: str) -> Tensor:
    """Log-probs of a micro-batch as a trie."""
    try:
        return engine(pack_trie(batch, micro).to(engine.device))[0]  # type: ignore[no-any-return]
    except torch.OutOfMemoryError:
        raise  # too large a micro-batch, which rows would exceed as well
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise CoevoError(f"a {kind} policy cannot forward a trie ({reason}): set update.packing=rows") from None


def _gaps(found: Sequence[Tensor], single: Sequence[Tensor]) -> Tensor:
    return torch.cat([(other[: len(row)] - row).abs() for other, row in zip(found, single, strict=True)])


def _padded(rows: PaddedRows) -> PaddedRows:
    """Rows with one more column of padding: the same computation, rounded in another way."""
    wider = {name: functional.pad(getattr(rows, name), (1, 0)) for name in ("ids", "positions", "real")}
    return replace(rows, **wider)


def _half(module: nn.Module) -> bool:
    return any(parameter.dtype != torch.float32 for parameter in module.parameters())


def _judge(found: Tensor, most: float, measure: str, kind: str) -> None:
    if not float(found) <= most:
        raise CoevoError(
            f"log-probs of a {kind} policy in a trie differ from those of single rows by {float(found):.2g} nats, "
            f"allowed is {most:.2g} {measure}: set update.packing=rows"
        )
