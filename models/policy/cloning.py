"""Steps of supervised training on answers: batches of token ids with labels, optimizers, and one step."""

from collections.abc import Sequence
from typing import Any

import torch
from peft import PeftModel
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

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
