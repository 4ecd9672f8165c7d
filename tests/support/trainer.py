"""The trainer without its process: the same policy, DeepSpeed engine and requests, in a small part of the time."""

from pathlib import Path

import torch

from coevo.models.trainer import ranks
from coevo.models.trainer.samples import read_scores
from coevo.models.trainer.trainer_client import UpdateReport
from coevo.models.trainer.training_session import TrainingSession


class LocalTrainer:
    """Answers what ``coevo.models.trainer.trainer_client.Trainer`` answers."""

    waited = 0.0

    def __init__(self, config, policy: Path) -> None:
        join()
        self._session = TrainingSession(
            config=config.update.model_dump_json(),
            temperature=config.rollout.sampling.temperature,
            threads=1,
            policy=str(policy),
            reference=str(policy),
            optimizer="",
        )

    def update(self, batch, key, answers=None):
        return UpdateReport(self._session.update(str(batch), list(key)))

    def update_critic(self, batch, key):
        return UpdateReport(self._session.update_critic(str(batch), list(key)))

    def score(self, batch, into):
        self._session.score(str(batch), str(into))
        return read_scores(into)

    def save(self, policy, optimizer):
        self._session.save(str(policy), str(optimizer))


def join():
    """A process forms its group once in its life."""
    if not torch.distributed.is_initialized():
        ranks.join()
