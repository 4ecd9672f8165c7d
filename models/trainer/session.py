"""What the trainer child holds: one run's policy, its frozen reference and its optimizer."""

from pathlib import Path

import torch

from configs.update import UpdateConfig
from models import policy as policies
from models.trainer import engine
from models.trainer.batch import read
from models.trainer.checkpoint import load_optimizer, save_optimizer
from models.trainer.forward import SharedPrefix
from models.trainer.learner import Learner
from records.draws import key


class Session:
    """A policy in training; the methods are the requests that the parent can make.

    Args:
        config: JSON of the ``UpdateConfig``.
        temperature: divides the logits.
        threads: CPU threads of one tensor operation.
        policy: directory of the policy to train.
        reference: directory of the frozen policy.
        optimizer: directory of the optimizer's state; empty to start afresh.
    """

    def __init__(
        self, *, config: str, temperature: float, threads: int, policy: str, reference: str, optimizer: str
    ) -> None:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(True)
        # Otherwise every step fills DeepSpeed's reduction buffers, gigabytes of them.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        engine.join()
        settings = UpdateConfig.model_validate_json(config)
        self._policy = policies.load(Path(policy))
        self._engine = engine.start(SharedPrefix(self._policy.model, temperature), settings)
        if optimizer:
            load_optimizer(self._engine, Path(optimizer))
        frozen = SharedPrefix(policies.load(Path(reference)).model, temperature)
        values = {name: parameter.detach() for name, parameter in engine.trainable(frozen).items()}
        self._learner = Learner(self._engine, values, settings)

    def update(self, batch: str, key_parts: list[int | str]) -> dict[str, float]:
        """One update from a file of samples."""
        return self._learner.update(read(Path(batch)), key(*key_parts))

    def save(self, policy: str, optimizer: str) -> None:
        """Write the policy's directory and the optimizer's."""
        policies.save(self._policy, Path(policy))
        save_optimizer(self._engine, Path(optimizer))
