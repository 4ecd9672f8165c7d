"""State of the trainer child: one run's policy, its frozen reference, its critic and their optimizers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from coevo.configs.update.update_config import UpdateConfig
from coevo.models.policy import policy as policies
from coevo.models.trainer import critic as critics
from coevo.models.trainer import deepspeed_engine
from coevo.models.trainer.checkpoint import load_optimizer, load_policy, save_optimizer, whole
from coevo.models.trainer.learner import Learner
from coevo.models.trainer.packed_forward import PolicyForward, bare
from coevo.models.trainer.packing import PaddedRows, pack_rows, pack_trie, tries
from coevo.models.trainer.ranks import rank
from coevo.models.trainer.reference_policy import load_reference
from coevo.models.trainer.samples import Scores, write_scores
from coevo.models.trainer.trie_attention import checkpoint_layers
from coevo.models.trainer.update_batch import Batch, read
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

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
        self._critic = critics.start(self._policy.model, settings, known) if settings.critic else None
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
