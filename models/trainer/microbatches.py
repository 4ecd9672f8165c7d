"""Micro-batches: rows of a minibatch cut to what a process holds at once."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from coevo.models.trainer.order import leaves
from coevo.models.trainer.update_batch import Batch

PAIRS: Final = 4096**2
"""Maximum pairs of a token and one that it attends to: their mask takes a byte for each."""

Runs = list[list[int]]
Cut = Callable[[Batch, Sequence[int], int], Runs]


def tries(batch: Batch, rows: Sequence[int], tokens: int) -> Runs:
    """Cut rows into tries of at most ``tokens`` distinct tokens and ``PAIRS`` pairs, or of one leaf.

    A group stays together where it fits, else each of its episodes does. The turns of a conversation are beginnings of
    its last row, which alone takes as much: they stay with it however long it is.
    """

    def fits(part: list[int]) -> bool:
        tree = leaves(batch.order, part)
        return len(tree.rows) == 1 or (tree.tokens <= tokens and tree.pairs <= PAIRS)

    runs: Runs = []
    levels = [batch.groups.tolist(), batch.episodes.tolist(), range(len(batch))]
    if rows:
        _add(runs, list(rows), levels, fits)
    return runs


def padded(batch: Batch, rows: Sequence[int], tokens: int) -> Runs:
    """Cut rows into runs of similar length, of at most ``tokens`` tokens with their padding, or of one row."""
    runs: Runs = []
    for row in sorted(rows, key=lambda row: (batch.length(row), row)):
        if runs and (len(runs[-1]) + 1) * batch.length(row) <= tokens:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _add(runs: Runs, rows: list[int], levels: Sequence[Sequence[int]], fits: Callable[[list[int]], bool]) -> None:
    """Add rows to the last run, else as a run, else part by part: the parts have the same value in ``levels[0]``."""
    if runs and fits(runs[-1] + rows):
        runs[-1] += rows
    elif fits(rows):
        runs.append(rows)
    else:
        for part in _parts(rows, levels[0]):
            _add(runs, part, levels[1:], fits)


def _parts(rows: list[int], values: Sequence[int]) -> Iterator[list[int]]:
    for _, part in groupby(sorted(rows, key=lambda row: (values[row], row)), key=lambda row: values[row]):
        yield list(part)
