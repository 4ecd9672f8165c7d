"""Steps of supervised training on answers: batches of token ids with labels, optimizers, and one step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from peft import PeftModel
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from coevo.configs.policy_config import WarmStartConfig
from coevo.models.policy.context import Context
from coevo.models.policy.language_model import Policy
from coevo.records.demonstration import Demonstration

IGNORED = -100
PARTS = 5
"""Number of parts of a step's examples, by length."""
Examples = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
"""Prompt and answer of each example, in token ids."""


def parts(examples: Examples) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Token ids and labels of examples, (rows, longest), in parts of similar length to reduce padding."""
    ranked = sorted(examples, key=lambda example: len(example[0]) + len(example[1]))
    size = -(-len(ranked) // PARTS)
    return [padded(ranked[start : start + size]) for start in range(0, len(ranked), size)]


def padded(examples: Examples) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels, padded on the right; only answers carry labels."""
    longest = max(len(prompt) + len(target) for prompt, target in examples)
    ids = torch.zeros(len(examples), longest, dtype=torch.long)
    labels = torch.full_like(ids, IGNORED)
    for row, (prompt, target) in enumerate(examples):
        end = len(prompt) + len(target)
        ids[row, :end] = torch.tensor([*prompt, *target])
        labels[row, len(prompt) : end] = torch.tensor(target)
    return ids, labels


@torch.no_grad()
def agreement(model: Any, examples: Examples, free: Sequence[int] = ()) -> float:
    """Share of examples, at least one, whose answer is the likeliest one at every token that is not free."""
    right, unasked = 0, torch.tensor([IGNORED, *free])
    for ids, labels in parts(examples):
        likeliest, told = model(input_ids=ids).logits[:, :-1].argmax(-1), labels[:, 1:]
        right += int(((likeliest == told) | torch.isin(told, unasked)).all(1).sum())
    return right / len(examples)


def optimizers(model: Any, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for embeddings, norms and biases.

    Adapters get AdamW only: Muon makes all directions of an update equally large, and the two factors of an adapter
    are not weights of their own but multiply to one.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [] if isinstance(model, PeftModel) else _matrices(model, trained)
    chosen = {id(parameter) for parameter in matrices}
    rest = [parameter for parameter in trained if id(parameter) not in chosen]
    found: list[torch.optim.Optimizer] = []
    if matrices:
        found.append(torch.optim.Muon(matrices, lr=rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"))
    if rest:
        found.append(torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.95), weight_decay=0.0))
    return found


def _matrices(model: Any, trained: Sequence[torch.nn.Parameter]) -> list[torch.nn.Parameter]:
    embeddings = {id(parameter) for parameter in model.get_input_embeddings().parameters()}
    embeddings |= {id(parameter) for parameter in model.get_output_embeddings().parameters()}
    return [parameter for parameter in trained if parameter.ndim == 2 and id(parameter) not in embeddings]


def step_on(
    model: Any,
    optimizers: Sequence[torch.optim.Optimizer],
    parts: Sequence[tuple[torch.Tensor, torch.Tensor]],
    rate: float,
    clip: float,
) -> float:
    """Take one step on batches of token ids and labels; return the mean loss per answer token, in nats."""
    total = sum(int((labels != IGNORED).sum()) for _, labels in parts)
    loss = 0.0
    for ids, labels in parts:
        # Padding follows every real token, so causal attention hides it.
        logits = model(input_ids=ids).logits[:, :-1]
        part = cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum")
        torch.autograd.backward(part / total)
        loss += float(part.detach()) / total
    clip_grad_norm_(model.parameters(), clip)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad()
    return loss


@dataclass(frozen=True)
class ProbeResult:
    """Result of a probe.

    Attributes:
        right: success rate with true lessons.
        wrong: success rate with false lessons.
        written: share of reflections as the teacher gives them, but for what it draws; None if none are taught.
    """

    right: float
    wrong: float
    written: float | None = None


@dataclass(frozen=True)
class WarmStartReport:
    """Result of cloning.

    Attributes:
        passed: True if the probe was passed within the maximum number of steps.
        steps: optimizer steps taken.
        probe: the last probe.
    """

    passed: bool
    steps: int
    probe: ProbeResult

    def figures(self) -> dict[str, float]:
        """Report as metrics."""
        return {
            "passed": float(self.passed),
            "steps": float(self.steps),
            "right": self.probe.right,
            "wrong": self.probe.wrong,
        } | ({} if self.probe.written is None else {"written": self.probe.written})


def clone(
    policy: Policy,
    examples: Callable[[int], Examples],
    probe: Callable[[Policy], ProbeResult],
    config: WarmStartConfig,
    progress: Callable[[str], None],
) -> WarmStartReport:
    """Train ``policy`` in place on the examples of each step, until the probe passes or the steps run out.

    Args:
        policy: trained in place.
        examples: prompts and answers of a step.
        probe: plays the reading probe.
        config: settings.
        progress: gets a line per step.
    """
    model = policy.model
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.ema))  # type: ignore[no-untyped-call]
    made = optimizers(model, config.lr)
    result, step = ProbeResult(0.0, 0.0), 0
    while step < config.steps and not _passes(result, config):
        model.train()
        loss = step_on(model, made, parts(examples(step)), _rate(step, config), config.clip)
        average.update_parameters(model)
        step += 1
        if step % config.probe_every == 0 or step == config.steps:
            result = probe(Policy(average.module.eval(), policy.tokenizer))
        progress(
            f"warm start: step {step} of at most {config.steps}, loss {loss:.3f}, "
            f"success with right lessons {result.right:.2f}, with wrong ones {result.wrong:.2f}"
            f"{'' if result.written is None else f', reflections as taught {result.written:.2f}'}"
        )
    model.load_state_dict(average.module.state_dict())
    model.eval()
    return WarmStartReport(_passes(result, config), step, result)


def demonstrated(context: Context, demonstrations: Sequence[Demonstration]) -> Examples:
    """Demonstrations as the prompts and answers of a policy."""
    return [(context.prompt(each.moment), context.target(each.answer, each.moment.form)) for each in demonstrations]


def _rate(step: int, config: WarmStartConfig) -> float:
    return config.lr * min(1.0, (step + 1) / max(1, config.warmup))


def _passes(result: ProbeResult, config: WarmStartConfig) -> bool:
    reads = result.right >= config.read and result.right - result.wrong >= config.margin
    return reads and (result.written is None or result.written >= config.write)
