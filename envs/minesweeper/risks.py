"""Exact risks: the probability of a mine in each hidden cell, over all placements that agree with what is shown."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import comb
from typing import NamedTuple

from coevo.envs.minesweeper.minefield import EMPTY, HIDDEN, bits, neighbours


class HiddenGroup(NamedTuple):
    """Hidden cells with the same opened cells around them: their cells, and the numbers of those opened cells."""

    cells: tuple[int, ...]
    clues: tuple[int, ...]


@lru_cache(maxsize=65536)
def risks(shown: str, size: int, mines: int, known: frozenset[int] = frozenset()) -> dict[int, float]:
    """Probability of a mine by hidden cell; empty if no placement agrees.

    Args:
        shown: symbol of each cell, no mine among them.
        size: cells of a side.
        mines: number of mines.
        known: cells that are said to be mines.
    """
    hidden = [cell for cell, symbol in enumerate(shown) if symbol == HIDDEN and cell not in known]
    groups, needed = _grouped(shown, size, hidden, bits(known))
    rest = next((len(group.cells) for group in groups if not group.clues), 0)
    near = [group for group in groups if group.clues]
    total, sums, outside = 0, [0] * len(near), 0
    for counts in _placements(near, needed, mines - len(known)):
        left = mines - len(known) - sum(counts)
        weight = comb(rest, left)
        for group, count in zip(near, counts, strict=True):
            weight *= comb(len(group.cells), count)
        total += weight
        outside += weight * left
        sums = [so_far + weight * count for so_far, count in zip(sums, counts, strict=True)]
    if not total:
        return {}
    found = {
        cell: each / total / len(group.cells) for group, each in zip(near, sums, strict=True) for cell in group.cells
    }
    found |= {cell: outside / total / rest for group in groups if not group.clues for cell in group.cells}
    return found | dict.fromkeys(known, 1.0)


def _grouped(shown: str, size: int, hidden: Sequence[int], known: int) -> tuple[list[HiddenGroup], list[int]]:
    """Groups of hidden cells, and the mines that each opened number still needs among them."""
    near, unknown = neighbours(size), bits(hidden)
    clues = [cell for cell, symbol in enumerate(shown) if symbol != HIDDEN and near[cell] & (unknown | known)]
    needed = [(0 if shown[cell] == EMPTY else int(shown[cell])) - (near[cell] & known).bit_count() for cell in clues]
    members = defaultdict[tuple[int, ...], list[int]](list)
    for cell in hidden:
        members[tuple(index for index, clue in enumerate(clues) if near[clue] >> cell & 1)].append(cell)
    groups = [HiddenGroup(tuple(cells), touched) for touched, cells in members.items()]
    return groups, needed


def _placements(groups: Sequence[HiddenGroup], needed: Sequence[int], mines: int) -> Iterator[tuple[int, ...]]:
    """Numbers of mines of each group that agree with all clues and with the number of mines."""
    room = [0] * len(needed)
    for group in groups:
        for clue in group.clues:
            room[clue] += len(group.cells)
    yield from _counted(groups, 0, list(needed), room, mines)


def _counted(
    groups: Sequence[HiddenGroup], index: int, needed: list[int], room: list[int], mines: int
) -> Iterator[tuple[int, ...]]:
    if any(need < 0 or need > most for need, most in zip(needed, room, strict=True)):
        return
    if index == len(groups):
        yield ()
        return
    group = groups[index]
    later = room.copy()
    for clue in group.clues:
        later[clue] -= len(group.cells)
    most = min(mines, len(group.cells), *(needed[clue] for clue in group.clues))
    for count in range(most + 1):
        still = needed.copy()
        for clue in group.clues:
            still[clue] -= count
        for others in _counted(groups, index + 1, still, later, mines - count):
            yield (count, *others)
