"""The policy's inner loop: passes over the batch in minibatches, each accumulated over micro-batches, then one step."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from configs.errors import CoevoError
from configs.update import UpdateConfig
from models.losses.aggregation import weights_of
from models.losses.mismatch import mismatch
from models.losses.policy import Completions, LossOutput, averages, policy_loss
from models.trainer import engine as deep
from models.trainer.batch import Batch, microbatches, minibatches
from models.trainer.packing import pack_rows
from records.draws import Key, extend


@dataclass(frozen=True, slots=True)
class Fixed:
    """Log-probs that do not move during an update, [rows, longest].

    Attributes:
        old: what importance ratios are taken to.
        reference: under the frozen reference.
    """

    old: Tensor
    reference: Tensor


class Learner:
    """Updates the policy that a DeepSpeed engine holds.

    Args:
        engine: over a ``SharedPrefix``.
        reference: values of the trainable parameters in the frozen reference policy, by name.
        config: loss, optimizer and memory budget.
    """

    def __init__(self, engine: Any, reference: Mapping[str, Tensor], config: UpdateConfig) -> None:
        self._engine = engine
        self._reference = reference
        self._config = config

    def update(self, batch: Batch, key: Key) -> dict[str, float]:
        """One update; ``key`` decides the order of minibatches.

        Returns:
            Metrics, all finite: means over tokens and steps of the update, and 0 where nothing was learned from.

        Raises:
            CoevoError: the loss is not finite.
        """
        started = time.perf_counter()
        optimizer = self._config.optimizer
        fixed = Fixed(self._old_logprobs(batch), self.reference_logprobs(batch))
        steps: list[list[LossOutput]] = []
        norms: list[float] = []
        for epoch in range(optimizer.epochs):
            for rows in minibatches(batch, optimizer.minibatches, extend(key, "epoch", epoch)):
                steps.append(self._accumulate(batch, rows, fixed))
                norms.append(deep.step(self._engine))
        lengths = sum(batch.length(row) for row in range(len(batch)))
        return {
            "loss": _mean([sum(float(output.loss.detach()) for output in outputs) for outputs in steps]),
            "grad_norm": _mean(norms),
            **averages([output for outputs in steps for output in outputs], self._config.loss),
            **mismatch(torch.cat([output.drift for output in steps[0]]) if steps else torch.zeros(0)),
            "samples": float(len(batch)),
            "tokens": float(batch.tokens),
            "steps": float(len(steps)),
            "tokens_per_second": optimizer.epochs * lengths / (time.perf_counter() - started),
        }

    def reference_logprobs(self, batch: Batch) -> Tensor:
        """Log-probs of the completions under the frozen reference, [rows, longest]."""
        return self._logprobs(batch, self._reference)

    def _old_logprobs(self, batch: Batch) -> Tensor:
        """What ratios are taken to: the policy before the update where the engine is corrected for, else the engine."""
        return batch.behaviour if self._config.loss.importance_cap is None else self._logprobs(batch, {})

    @torch.no_grad()
    def _logprobs(self, batch: Batch, parameters: Mapping[str, Tensor]) -> Tensor:
        """Log-probs under the policy with these parameters in the place of its own."""
        logprobs = torch.zeros(batch.mask.shape)
        for rows in microbatches(batch, list(range(len(batch))), self._config.deepspeed.tokens):
            arguments = (pack_rows(batch, rows),)
            chosen, _ = torch.func.functional_call(self._engine.module, dict(parameters), arguments)
            logprobs[rows, : chosen.shape[1]] = chosen
        return logprobs

    def _accumulate(self, batch: Batch, rows: list[int], fixed: Fixed) -> list[LossOutput]:
        """Add up the gradients of one minibatch."""
        loss = self._config.loss
        weights = torch.zeros(batch.mask.shape)
        width = loss.width or batch.mask.shape[1]
        weights[rows] = weights_of(batch.mask[rows], batch.episodes[rows], width, loss.aggregation)
        outputs = []
        for micro in microbatches(batch, rows, self._config.deepspeed.tokens):
            output = policy_loss(self._completions(batch, micro, fixed, weights), self._config.loss)
            if not math.isfinite(float(output.loss.detach())):
                raise CoevoError(
                    f"the update's loss is {float(output.loss.detach())}: lower update.optimizer.lr="
                    f"{self._config.optimizer.lr}, or roll back to an earlier revision"
                )
            self._engine.backward(output.loss)
            outputs.append(output)
        return outputs

    def _completions(self, batch: Batch, rows: list[int], fixed: Fixed, weights: Tensor) -> Completions:
        logprobs, entropy = self._engine(pack_rows(batch, rows))
        width = logprobs.shape[1]
        return Completions(
            logprobs=logprobs,
            old=fixed.old[rows, :width],
            behaviour=batch.behaviour[rows, :width],
            reference=fixed.reference[rows, :width],
            entropy=entropy,
            advantages=batch.advantages[rows, :width],
            mask=batch.mask[rows, :width],
            weights=weights[rows, :width],
        )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
