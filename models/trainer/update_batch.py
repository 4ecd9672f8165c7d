"""Rows of an update as tensors, and the order in which minibatches take them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from coevo.models.trainer.order import Order, order
from coevo.records.draws import Key, generator

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of one update; completions right-padded to the longest, [rows, longest].

    Attributes:
        prompts: token ids of each row's prompt.
        completions: token ids of each row's completion.
        groups: index of each row's group, [rows].
        episodes: index of each row's episode, [rows].
        behaviour: the engine's log-probs, [rows, longest].
        mask: true on real tokens, [rows, longest].
        advantages: of each token, [rows, longest].
        values: the critic's value before each token, [rows, longest]; [rows, 0] without a critic.
        returns: the critic's target before each token, shaped like ``values``.
        order: lexicographic order of the rows.
    """

    prompts: list[Ids]
    completions: list[Ids]
    groups: Tensor
    episodes: Tensor
    behaviour: Tensor
    mask: Tensor
    advantages: Tensor
    values: Tensor
    returns: Tensor
    order: Order

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def tokens(self) -> int:
        """Number of completion tokens."""
        return int(self.mask.sum())

    def length(self, row: int) -> int:
        """Number of tokens of a row, prompt and completion."""
        return len(self.prompts[row]) + len(self.completions[row])


def read(path: Path) -> Batch:
    """Read the batch in a Parquet file of ``coevo.models.trainer.samples.SAMPLES`` rows."""
    columns = pq.read_table(path, memory_map=True).to_pydict()
    logprobs = [torch.tensor(values, dtype=torch.float32) for values in columns["logprobs"]]
    prompts, completions = ([tuple(ids) for ids in columns[name]] for name in ("prompt_ids", "token_ids"))
    return Batch(
        prompts=prompts,
        completions=completions,
        groups=_index(columns["group"]),
        episodes=_index(columns["episode"]),
        behaviour=_pad(logprobs),
        mask=_pad([torch.ones(len(values), dtype=torch.bool) for values in logprobs], torch.bool),
        advantages=_pad([torch.tensor(values, dtype=torch.float32) for values in columns["advantage"]]),
        values=_pad([torch.tensor(values, dtype=torch.float32) for values in columns["value"]]),
        returns=_pad([torch.tensor(values, dtype=torch.float32) for values in columns["return"]]),
        order=order([prompt + completion for prompt, completion in zip(prompts, completions, strict=True)]),
    )


def minibatches(batch: Batch, count: int, key: Key) -> list[list[int]]:
    """Rows of each minibatch: whole groups, in an order drawn from ``key``; at most one minibatch per group."""
    order = generator(key).permutation(len(torch.unique(batch.groups)))
    parts = np.array_split(order, min(count, len(order))) if len(order) else []
    return [torch.isin(batch.groups, torch.from_numpy(part)).nonzero().flatten().tolist() for part in parts]


def mean(values: Sequence[float]) -> float:
    """Mean over minibatches; 0 without any."""
    return sum(values) / len(values) if values else 0.0


def _index(names: list[str]) -> Tensor:
    return torch.from_numpy(np.unique(np.asarray(names, dtype=np.str_), return_inverse=True)[1])


def _pad(rows: list[Tensor], dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows of different lengths, right-padded; without any row, of the same type."""
    return pad_sequence(rows, batch_first=True) if rows else torch.zeros(0, 0, dtype=dtype)
