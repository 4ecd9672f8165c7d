"""The policy's inner loop: passes over the batch in minibatches, each accumulated over micro-batches, then one step.

The loss may have two terms (RetroAgent Eq. 4): that of the policy's turns, and that of its answers as writer.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from coevo.configs.update.update_config import UpdateConfig
from coevo.models.losses.aggregation import weights_of
from coevo.models.losses.policy_loss import (
    Completions,
    Loss,
    LossOutput,
    averages,
    by_token,
    kl_estimate,
    mismatch,
    policy_loss,
)
from coevo.models.losses.writer_loss import REINFORCE, clipped
from coevo.models.trainer import deepspeed_engine as deep
from coevo.models.trainer import ranks
from coevo.models.trainer.packed_forward import Objective
from coevo.models.trainer.reference_policy import PackedForward
from coevo.models.trainer.update_batch import Batch, mean, minibatches
from coevo.records.draws import Key, extend
from coevo.utilities.errors import CoevoError

MOVED = 128
"""Most rows, spread over the batch, that measure how far an update has moved the policy."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Log-probs that stay fixed during an update, [rows, longest].

    Attributes:
        old: denominator of importance ratios.
        reference: under the frozen reference.
    """

    old: Tensor
    reference: Tensor


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the update's loss, over rows of its own.

    Attributes:
        batch: its rows.
        fixed: their log-probs that stay fixed.
        loss: its loss.
        weight: factor of the loss.
    """

    batch: Batch
    fixed: Fixed
    loss: Loss
    weight: float = 1.0


class Learner:
    """Updates the policy of a DeepSpeed engine.

    Args:
        engine: over a ``PolicyForward``.
        reference: forward of the frozen reference policy.
        config: loss, optimizer and memory budget.
    """

    def __init__(self, engine: Any, reference: PackedForward, config: UpdateConfig) -> None:
        self._engine = engine
        self._reference = reference
        self._config = config
        self._share = deep.Share(engine, config)

    def update(self, batch: Batch, key: Key, answers: Batch | None = None) -> dict[str, float]:
        """Run one update; ``key`` decides the order of minibatches.

        Args:
            batch: turns of the policy.
            key: root of the draws.
            answers: those of the policy as writer; each step has its part of them.

        Returns:
            Metrics, all finite: means over tokens and steps of the update, and 0 without steps.

        Raises:
            CoevoError: the loss is not finite, or a gradient changed no weight.
        """
        started, before = time.perf_counter(), deep.sampled(self._engine)
        terms = [self._policy_term(batch), *(() if answers is None else (self._writer_term(answers),))]
        rows_moved = range(0, len(batch), max(1, -(-len(batch) // MOVED)))
        at_first = self._at_first(terms[0], rows_moved)
        steps: list[list[list[LossOutput]]] = []
        norms: list[float] = []
        for rows in self._schedule(terms, key):
            steps.append([self._accumulate(term, chosen) for term, chosen in zip(terms, rows, strict=True)])
            norms.append(deep.step(self._engine))
            self._check_finite("gradient", norms[-1])
        self._check_changed(before, norms)
        metrics = self._metrics(terms[0], [outputs for outputs, *_ in steps], time.perf_counter() - started)
        told = {} if answers is None else self._writer_metrics(answers, [outputs[1] for outputs in steps])
        moved = {"kl_previous": self._moved(batch, at_first, rows_moved)}
        return metrics | told | moved | {"grad_norm": mean(norms), "steps": float(len(steps))}

    def _at_first(self, term: Term, rows: Sequence[int]) -> Tensor:
        """Log-probs of some rows under the policy before the update, as the trainer computes them, [rows, longest]."""
        return term.fixed.old if self._config.loss.recomputes else self._logprobs(term.batch, self._engine, rows)

    def _moved(self, batch: Batch, before: Tensor, rows: Sequence[int]) -> float:
        """KL(policy before || after the update) per token of some rows, whose tokens the former drew; by k3."""
        gap = (self._logprobs(batch, self._engine, rows) - before)[list(rows)][batch.mask[list(rows)]]
        return float(kl_estimate(gap.double(), "k3").mean()) if gap.numel() else 0.0

    def _policy_term(self, batch: Batch) -> Term:
        fixed = Fixed(self._old_logprobs(batch), self.reference_logprobs(batch))
        return Term(batch, fixed, Loss(policy_loss, self._config.loss))

    def _writer_term(self, answers: Batch) -> Term:
        config = self._config.writer
        assert config is not None
        if config.clip is None:
            return Term(answers, Fixed(answers.behaviour, answers.behaviour), REINFORCE, config.weight)
        fixed = Fixed(self._logprobs(answers, self._engine), self.reference_logprobs(answers))
        return Term(answers, fixed, clipped(config.clip, config.kl_coefficient), config.weight)

    def _schedule(self, terms: Sequence[Term], key: Key) -> Iterator[tuple[list[int], ...]]:
        """Rows of each term at each optimizer step; a term with fewer minibatches than another has none in the rest."""
        optimizer = self._config.optimizer
        for epoch in range(optimizer.epochs):
            draws = [extend(key, "epoch", epoch), extend(key, "answers", epoch)]
            parts = [
                minibatches(term.batch, optimizer.minibatches, draw) for term, draw in zip(terms, draws, strict=False)
            ]
            yield from zip_longest(*parts, fillvalue=list[int]())

    def _metrics(self, term: Term, steps: Sequence[list[LossOutput]], seconds: float) -> dict[str, float]:
        batch = term.batch
        lengths = sum(batch.length(row) for row in range(len(batch)))
        if self._config.loss.recomputes:
            drift = (term.fixed.old - batch.behaviour)[batch.mask]
        else:  # of the first step, before which nothing has moved
            drift = torch.cat([torch.zeros(0), *(output.drift for output in (steps[0] if steps else ()))])
        return {
            "loss": mean([_sum(outputs) for outputs in steps if outputs]),
            **averages([output for outputs in steps for output in outputs], self._config.loss),
            **mismatch(drift),
            "samples": float(len(batch)),
            "tokens": float(batch.tokens),
            "tokens_per_second": self._config.optimizer.epochs * lengths / seconds,
        }

    def _writer_metrics(self, answers: Batch, steps: Sequence[list[LossOutput]]) -> dict[str, float]:
        assert self._config.writer is not None
        weighted = mean([_sum(outputs) for outputs in steps if outputs])
        found = {
            "writer_loss": weighted / self._config.writer.weight,
            "writer_answers": float(len(answers)),
            "writer_tokens": float(answers.tokens),
        }
        if self._config.writer.clip is None:
            return found
        means = averages([output for outputs in steps for output in outputs], REINFORCE.config)
        return found | {f"writer_{name}": means[name] for name in ("clip_share", "kl")}

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
        """Denominator of ratios: the policy before the update, or the engine, as the loss has it."""
        return self._logprobs(batch, self._engine) if self._config.loss.recomputes else batch.behaviour

    def _logprobs(self, batch: Batch, forward: PackedForward, rows: Sequence[int] | None = None) -> Tensor:
        """Log-probs of all or of some rows under a policy."""
        return self._share.forwarded(batch, lambda packed: forward(packed)[0], rows)

    def _accumulate(self, term: Term, rows: list[int]) -> list[LossOutput]:
        """Accumulate the gradients of one minibatch of a term; return the outputs of all of its micro-batches."""
        batch, loss, outputs = term.batch, term.loss.config, list[LossOutput]()
        if not rows:
            return outputs
        weights = torch.zeros(batch.mask.shape)
        width = loss.width or batch.mask.shape[1]
        weights[rows] = term.weight * weights_of(batch.mask[rows], batch.episodes[rows], width, loss.aggregation)
        for micro, counts in self._share.micro_batches(batch, rows):
            output = self._backward(term, micro, weights * counts)
            if counts:
                outputs.append(replace(output, loss=output.loss.cpu(), drift=output.drift.cpu()))
        outputs = ranks.in_order(outputs)
        for output in outputs:
            self._check_finite("loss", float(output.loss))
        return outputs

    def _check_finite(self, name: str, number: float) -> None:
        if not math.isfinite(number):
            raise CoevoError(
                f"the update's {name} is {number}: lower update.optimizer.lr={self._config.optimizer.lr}, "
                "or roll back to an earlier revision"
            )

    def _backward(self, term: Term, rows: list[int], weights: Tensor) -> LossOutput:
        """Accumulate the gradients of one micro-batch; the output has none."""
        batch, width = term.batch, max(len(term.batch.completions[row]) for row in rows)

        def of(values: Tensor) -> Tensor:
            return values[rows, :width].to(self._engine.device)

        given = {
            "old": of(term.fixed.old),
            "behaviour": of(batch.behaviour),
            "reference": of(term.fixed.reference),
            "advantages": of(batch.advantages),
            "mask": of(batch.mask),
            "weights": of(weights),
        }

        def output(logprobs: Tensor, entropies: Tensor) -> LossOutput:
            return term.loss.of(Completions(logprobs=logprobs, entropy=entropies, **given))

        objective = Objective(lambda *values: output(*values).loss, by_token(term.loss.config))
        logprobs, entropies, loss = self._engine(self._share.packed(batch, rows), objective)
        deep.backward(self._engine, loss)
        return output(logprobs, entropies)


def _sum(outputs: Sequence[LossOutput]) -> float:
    return sum(float(output.loss) for output in outputs)
