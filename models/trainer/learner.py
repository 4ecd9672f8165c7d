"""The policy's inner loop: passes over the batch in minibatches, each accumulated over micro-batches, then one step."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from coevo.configs.errors import CoevoError
from coevo.configs.update.update import UpdateConfig
from coevo.models.losses.aggregation import weights_of
from coevo.models.losses.mismatch import mismatch
from coevo.models.losses.policy import Completions, LossOutput, averages, by_token, policy_loss
from coevo.models.trainer import engine as deep
from coevo.models.trainer import ranks
from coevo.models.trainer.batch import Batch, minibatches
from coevo.models.trainer.forward import Objective
from coevo.models.trainer.microbatches import Runs
from coevo.models.trainer.packing import PACKINGS, Packed
from coevo.models.trainer.reference import Forward
from coevo.records.draws import Key, extend


@dataclass(frozen=True, slots=True)
class Fixed:
    """Log-probs that stay fixed during an update, [rows, longest].

    Attributes:
        old: denominator of importance ratios.
        reference: under the frozen reference.
    """

    old: Tensor
    reference: Tensor


class Learner:
    """Updates the policy of a DeepSpeed engine.

    Args:
        engine: over a ``PolicyForward``.
        reference: forward of the frozen reference policy.
        config: loss, optimizer and memory budget.
    """

    def __init__(self, engine: Any, reference: Forward, config: UpdateConfig) -> None:
        self._engine = engine
        self._reference = reference
        self._config = config
        self._packing = PACKINGS[config.packing]

    def update(self, batch: Batch, key: Key) -> dict[str, float]:
        """Run one update; ``key`` decides the order of minibatches.

        Returns:
            Metrics, all finite: means over tokens and steps of the update, and 0 without steps.

        Raises:
            CoevoError: the loss is not finite, or a gradient changed no weight.
        """
        started, before = time.perf_counter(), deep.sampled(self._engine)
        optimizer = self._config.optimizer
        fixed = Fixed(self._old_logprobs(batch), self.reference_logprobs(batch))
        steps: list[list[LossOutput]] = []
        norms: list[float] = []
        for epoch in range(optimizer.epochs):
            for rows in minibatches(batch, optimizer.minibatches, extend(key, "epoch", epoch)):
                steps.append(self._accumulate(batch, rows, fixed))
                norms.append(deep.step(self._engine))
        self._check_changed(before, norms)
        lengths = sum(batch.length(row) for row in range(len(batch)))
        return {
            "loss": _mean([sum(float(output.loss) for output in outputs) for outputs in steps]),
            "grad_norm": _mean(norms),
            **averages([output for outputs in steps for output in outputs], self._config.loss),
            **mismatch(torch.cat([output.drift for output in steps[0]]) if steps else torch.zeros(0)),
            "samples": float(len(batch)),
            "tokens": float(batch.tokens),
            "steps": float(len(steps)),
            "tokens_per_second": optimizer.epochs * lengths / (time.perf_counter() - started),
        }

    def _check_changed(self, before: list[Tensor], norms: list[float]) -> None:
        """Check that steps with a gradient changed the float32 weights that the optimizer holds."""
        if any(norms) and all(map(torch.equal, before, deep.sampled(self._engine))):
            raise CoevoError(
                f"the update changed no float32 weight, although its gradient has norm {max(norms):.1e}: raise "
                f"update.optimizer.lr={self._config.optimizer.lr}"
            )

    def reference_logprobs(self, batch: Batch) -> Tensor:
        """Log-probs of the completions under the frozen reference, [rows, longest]."""
        return self._logprobs(batch, self._reference)

    def _old_logprobs(self, batch: Batch) -> Tensor:
        """Denominator of ratios: the policy before the update if the loss corrects for the engine, else the engine."""
        return batch.behaviour if self._config.loss.importance_cap is None else self._logprobs(batch, self._engine)

    @torch.no_grad()
    def _logprobs(self, batch: Batch, forward: Forward) -> Tensor:
        """Log-probs under a policy; the processes share the rows."""
        logprobs = torch.zeros(batch.mask.shape)
        for rows, counts in ranks.mine(self._rounds(batch, range(len(batch)))):
            chosen, _ = forward(self._packed(batch, rows))
            if counts:
                logprobs[rows, : chosen.shape[1]] = chosen.cpu()
        return ranks.summed(logprobs)

    def _rounds(self, batch: Batch, rows: Sequence[int]) -> Runs:
        return ranks.rounds(partial(self._packing.cut, batch, rows), self._config.deepspeed.tokens)

    def _packed(self, batch: Batch, rows: list[int]) -> Packed:
        return self._packing.pack(batch, rows).to(self._engine.device)

    def _accumulate(self, batch: Batch, rows: list[int], fixed: Fixed) -> list[LossOutput]:
        """Accumulate the gradients of one minibatch; return the outputs of all of its micro-batches."""
        loss = self._config.loss
        weights = torch.zeros(batch.mask.shape)
        width = loss.width or batch.mask.shape[1]
        weights[rows] = weights_of(batch.mask[rows], batch.episodes[rows], width, loss.aggregation)
        outputs = []
        for micro, counts in ranks.mine(self._rounds(batch, rows)):
            output = self._backward(batch, micro, fixed, weights * counts)
            if counts:
                outputs.append(replace(output, loss=output.loss.cpu(), drift=output.drift.cpu()))
        outputs = ranks.in_order(outputs)
        for total in (float(output.loss) for output in outputs):
            if not math.isfinite(total):
                raise CoevoError(
                    f"the update's loss is {total}: lower update.optimizer.lr={self._config.optimizer.lr}, "
                    "or roll back to an earlier revision"
                )
        return outputs

    def _backward(self, batch: Batch, rows: list[int], fixed: Fixed, weights: Tensor) -> LossOutput:
        """Accumulate the gradients of one micro-batch; the output has none."""
        config = self._config.loss
        width = max(len(batch.completions[row]) for row in rows)

        def of(values: Tensor) -> Tensor:
            return values[rows, :width].to(self._engine.device)

        given = {
            "old": of(fixed.old),
            "behaviour": of(batch.behaviour),
            "reference": of(fixed.reference),
            "advantages": of(batch.advantages),
            "mask": of(batch.mask),
            "weights": of(weights),
        }

        def output(logprobs: Tensor, entropies: Tensor) -> LossOutput:
            return policy_loss(Completions(logprobs=logprobs, entropy=entropies, **given), config)

        objective = Objective(lambda *values: output(*values).loss, by_token(config))
        logprobs, entropies, loss = self._engine(self._packed(batch, rows), objective)
        deep.backward(self._engine, loss)
        return output(logprobs, entropies)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
