"""Updates by plain torch and by TRL's trainer, in this process, on padded micro-batches."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.speed.group_prompts import GROUP
from coevo.configs.update.update_config import UpdateConfig
from coevo.models.losses.aggregation import weights_of
from coevo.models.losses.policy_loss import Completions, policy_loss
from coevo.models.policy.policy import load
from coevo.models.trainer.update_batch import Batch, minibatches
from coevo.records.draws import Key, extend
from coevo.utilities.errors import CoevoError


def logprobs_of(model: Any, ids: Tensor, mask: Tensor, kept: int) -> Tensor:
    """Log-probs of the last ``kept`` tokens of rows, [rows, kept]."""
    logits = model(input_ids=ids, attention_mask=mask, logits_to_keep=kept + 1).logits[:, :-1]
    chosen: Tensor = logits.log_softmax(-1).gather(-1, ids[:, -kept:, None]).squeeze(-1)
    return chosen


class Padded(ABC):
    """A contender in this process that pads micro-batches of some size."""

    def __init__(self, config: UpdateConfig, batch: Batch, size: int) -> None:
        torch.set_num_threads(1)
        self._config, self._batch, self._size = config, batch, size
        self.model: Any = None
        self._optimizer: Any = None

    def cpu(self) -> float:
        """Processor seconds of the process."""
        return time.process_time()

    def update(self, draws: Key) -> float:
        """The steps of one pass."""
        steps = minibatches(self._batch, self._config.optimizer.minibatches, extend(draws, "epoch", 0))
        return float(np.mean([self._step(rows) for rows in steps]))

    def _step(self, rows: list[int]) -> float:
        parts = [rows[start : start + self._size] for start in range(0, len(rows), self._size)]
        tokens = int(self._batch.mask[rows].sum())
        total = sum(self.backward(part, tokens, len(parts)) for part in parts)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._config.optimizer.clip)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return total

    def backward(self, rows: list[int], tokens: int, parts: int) -> float:
        """Add the gradients of a micro-batch of a step of so many tokens and parts; return its part of the loss."""
        loss = self._loss(padded(self._batch, rows), rows, tokens, parts)
        torch.autograd.backward(loss)
        return float(loss.detach())

    @abstractmethod
    def _loss(self, inputs: dict[str, Tensor], rows: list[int], tokens: int, parts: int) -> Tensor:
        """A micro-batch's part of the loss of a step of so many tokens and parts."""


def padded(batch: Batch, rows: Sequence[int]) -> dict[str, Tensor]:
    """Rows as TRL has them: prompts padded on their left, completions on their right."""
    before = max(len(batch.prompts[row]) for row in rows)
    after = max(len(batch.completions[row]) for row in rows)
    prompts = [(before - len(batch.prompts[row]), batch.prompts[row]) for row in rows]
    completions = [(after - len(batch.completions[row]), batch.completions[row]) for row in rows]
    return {
        "prompt_ids": torch.tensor([[0] * pad + list(ids) for pad, ids in prompts]),
        "prompt_mask": torch.tensor([[0] * pad + [1] * len(ids) for pad, ids in prompts]),
        "completion_ids": torch.tensor([list(ids) + [0] * pad for pad, ids in completions]),
        "completion_mask": torch.tensor([[1] * len(ids) + [0] * pad for pad, ids in completions]),
        "old_per_token_logps": batch.behaviour[rows, :after],
        "advantages": batch.advantages[rows, :after],
    }


def joined(inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, int]:
    """Ids and mask of whole rows, and how many columns are completion."""
    ids, mask = (torch.cat([inputs[f"prompt_{what}"], inputs[f"completion_{what}"]], 1) for what in ("ids", "mask"))
    return ids, mask, inputs["completion_ids"].shape[1]


class Plain(Padded):
    """Transformers' forward, our loss, torch's AdamW."""

    def __init__(self, directory: Path, config: UpdateConfig, batch: Batch, size: int) -> None:
        super().__init__(config, batch, size)
        self.model, self._frozen = load(directory / "policy").model, load(directory / "policy").model
        adam = config.optimizer
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=adam.lr, betas=adam.betas, weight_decay=adam.weight_decay
        )

    def _loss(self, inputs: dict[str, Tensor], rows: list[int], tokens: int, parts: int) -> Tensor:
        ids, mask, kept = joined(inputs)
        with torch.no_grad():
            reference = logprobs_of(self._frozen, ids, mask, kept)
        logprobs = logprobs_of(self.model, ids, mask, kept)
        real, old = inputs["completion_mask"].bool(), inputs["old_per_token_logps"]
        weights = weights_of(real, self._batch.episodes[rows], kept, "token-mean") * (int(real.sum()) / tokens)
        told = Completions(
            logprobs, old, old, reference, torch.zeros_like(old), inputs["advantages"], real, weights.float()
        )
        return policy_loss(told, self._config.loss).loss


class Trl(Padded):
    """TRL's trainer with the batches that it would have made of these completions."""

    def __init__(self, directory: Path, config: UpdateConfig, batch: Batch, size: int) -> None:
        super().__init__(config, batch, size)
        self._trainer = grpo_trainer(directory, config, max(size, GROUP))  # it wants whole groups
        self.model, self._optimizer = self._trainer.model, self._trainer.create_optimizer()
        self.model.train()

    def _loss(self, inputs: dict[str, Tensor], rows: list[int], tokens: int, parts: int) -> Tensor:
        ids, mask, kept = joined(inputs)
        trainer = self._trainer
        with torch.no_grad():
            reference = trainer._get_per_token_logps_and_entropies(trainer.ref_model, ids, mask, kept)[0]
        # It scales by these two, whose ratio is 1 where one batch of completions makes one step.
        trainer.current_gradient_accumulation_steps = trainer.args.steps_per_generation = parts
        more = {"ref_per_token_logps": reference, "num_items_in_batch": torch.tensor(tokens)}
        loss: Tensor = trainer.compute_loss(self.model, inputs | more)
        return loss


def grpo_trainer(directory: Path, config: UpdateConfig, size: int) -> Any:
    """TRL's trainer with the settings of an update.

    Raises:
        CoevoError: TRL is not installed.
    """
    if find_spec("trl") is None:
        raise CoevoError("update_peers compares with TRL, which is not installed: pip install 'coevo[bench]'")
    trl, datasets = import_module("trl"), import_module("datasets")
    adam, loss = config.optimizer, config.loss
    arguments = trl.GRPOConfig(
        output_dir=str(directory / f"trl-{size}"),
        use_cpu=True,
        bf16=False,
        report_to="none",
        gradient_checkpointing=False,
        per_device_train_batch_size=size,
        num_generations=GROUP,
        loss_type="dapo",
        use_bias_correction_kl=False,
        beta=loss.kl_coefficient,
        epsilon=loss.clip_low,
        epsilon_high=loss.clip_high,
        learning_rate=adam.lr,
        adam_beta1=adam.betas[0],
        adam_beta2=adam.betas[1],
        weight_decay=adam.weight_decay,
    )
    nothing = datasets.Dataset.from_list([{"prompt": "x"}] * size)
    tokenizer = load(directory / "policy").tokenizer
    return trl.GRPOTrainer(
        str(directory / "policy"), _no_reward, args=arguments, train_dataset=nothing, processing_class=tokenizer
    )


def _no_reward(completions: Sequence[object], **_: object) -> list[float]:
    return [0.0] * len(completions)
