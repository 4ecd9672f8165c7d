"""Rows for updates: what a policy could have drawn, and the plain forward that every shortcut must equal."""

import torch

from coevo.models.trainer.order import order
from coevo.models.trainer.update_batch import Batch
from coevo.records.draws import generator, key

TEMPERATURE = 0.8


def plain_logprobs(model, prompts, completions):
    """Log-probs and entropies of completions by one unpadded forward a row."""
    rows, entropies = [], []
    for prompt, completion in zip(prompts, completions, strict=True):
        logits = model(input_ids=torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1]
        logprobs = torch.log_softmax(logits / TEMPERATURE, -1)
        rows.append(logprobs[range(len(completion)), list(completion)])
        entropies.append(-(logprobs.exp() * logprobs).sum(-1))
    return rows, entropies


def ragged(groups=3, episodes=2, turns=3, number=0):
    """Prompts and completions of rows that share prefixes, prompts and whole rows in every way there is."""
    draw = generator(key("ragged", number))

    def ids(low, high):
        return tuple(draw.integers(3, 20, draw.integers(low, high)).tolist())

    prompts, completions, owners = [], [], []
    for group in range(groups):
        head = ids(3, 9)
        states = [head + ids(1, 6) for _ in range(2)]
        for _ in range(episodes * turns):
            prompts.append(states[draw.integers(2)])
            completions.append(ids(1, 6) if draw.random() < 0.7 else (5, 6, 7))
            owners.append(group)
    return prompts, completions, owners


def batch_of(prompts, completions, groups=None, episodes=None):
    """A batch of these rows without advantages; by default each is an episode, and all are one group."""
    mask = torch.zeros(len(prompts), max(map(len, completions)), dtype=torch.bool)
    for row, completion in enumerate(completions):
        mask[row, : len(completion)] = True
    zeros = torch.zeros(mask.shape)
    return Batch(
        prompts=list(prompts),
        completions=list(completions),
        groups=torch.tensor(groups or [0] * len(prompts)),
        episodes=torch.tensor(episodes or range(len(prompts))),
        behaviour=zeros,
        mask=mask,
        advantages=zeros,
        values=zeros[:, :0],
        returns=zeros[:, :0],
        order=order([(*prompt, *completion) for prompt, completion in zip(prompts, completions, strict=True)]),
    )


def packed_as(pack, rows):
    """All of these prompts and completions, packed."""
    batch = batch_of(*rows)
    return pack(batch, range(len(batch)))
