"""Rules of MineSweeper: pure transitions. Cells are numbered row by row, and sets of cells are bits of a number."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from coevo.envs.base import Step

HIDDEN, EMPTY, MINE = "?", ".", "*"
NUMBERS = tuple(map(str, range(1, 9)))
WON_REWARD, CASCADE_REWARD, SINGLE_REWARD, IDLE_REWARD, MINE_REWARD = 10.0, 2.0, 0.5, -1.0, -0.1
UNREADABLE, OUTSIDE = "nothing happens", "no cell there"
MAX_ACTION_CHARS = 32
_CELL = re.compile(r"\(?\s*([1-9]\d?)\s*,?\s+([1-9]\d?)\s*\)?|\(?([1-9]\d?),([1-9]\d?)\)?", re.ASCII)
"""Row and column, as in ``(2, 3)``; brackets and either comma or space may be missing."""


@lru_cache(maxsize=64)
def neighbours(size: int) -> tuple[int, ...]:
    """Bits of the cells around each cell of a square field."""
    places = [divmod(cell, size) for cell in range(size * size)]
    return tuple(
        bits(number for number, (y, x) in enumerate(places) if (y, x) != (row, column) and _near(y - row, x - column))
        for row, column in places
    )


def _near(down: int, right: int) -> bool:
    return abs(down) <= 1 and abs(right) <= 1


def bits(cells: Iterable[int]) -> int:
    """Number with the bits of these cells."""
    return sum(1 << cell for cell in cells)


def cells_of(mask: int) -> Iterator[int]:
    """Cells of a number's bits, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def place(cell: int, size: int) -> str:
    """Action that opens a cell, rows and columns from 1; one word, which is one token of a policy from scratch."""
    return f"({cell // size + 1},{cell % size + 1})"


def named(cell: int, symbol: str, size: int) -> str:
    """A cell with its place, one word."""
    return f"{place(cell, size)}{symbol}"


class FieldPlan(NamedTuple):
    """A field: cells of a side, mines, the cell that takes the mine that the first opened cell would hold, and a limit.

    ``named``: True if observations write each cell with its place.
    """

    size: int
    mines: tuple[int, ...]
    spare: int
    limit: int
    named: bool = False


class MineState(NamedTuple):
    """A point of an episode.

    Attributes:
        plan: the field.
        mines: bits of the mines; 0 before the first cell is opened, since that cell decides where they are.
        opened: bits of the opened cells.
        shown: symbol of each cell.
        steps: actions so far.
    """

    plan: FieldPlan
    mines: int
    opened: int
    shown: str
    steps: int

    def text(self) -> str:
        """Observation: rows of symbols, or of places and symbols."""
        size = self.plan.size
        cells = list(map(named, range(size * size), self.shown, repeat(size))) if self.plan.named else self.shown
        return "\n".join(" ".join(cells[start : start + size]) for start in range(0, size * size, size))


def begin(plan: FieldPlan) -> MineState:
    """First state of a field, all cells hidden."""
    return MineState(plan, 0, 0, HIDDEN * plan.size**2, 0)


def advance(state: MineState, action: str) -> Step[MineState]:
    """Open the cell that an action names; one without effect costs a step."""
    size = state.plan.size
    found = _CELL.fullmatch(action.strip()) if len(action) <= MAX_ACTION_CHARS else None
    row, column = (int(number) - 1 for number in found.groups() if number) if found else (size, size)
    if row >= size or column >= size:
        return _step(state._replace(steps=state.steps + 1), OUTSIDE if found else UNREADABLE, IDLE_REWARD, valid=False)
    cell = row * size + column
    if state.opened >> cell & 1:
        return _step(state._replace(steps=state.steps + 1), f"{place(cell, size)} is open", IDLE_REWARD)
    return _opened(state, cell)


def opened_at(state: MineState, cell: int) -> MineState:
    """State after a cell is opened that costs no step."""
    return _opened(state, cell).state._replace(steps=state.steps)


def _opened(state: MineState, cell: int) -> Step[MineState]:
    plan = state.plan
    mines = state.mines or bits(plan.spare if mine == cell else mine for mine in plan.mines)
    if mines >> cell & 1:
        shown = "".join(MINE if mines >> each & 1 else symbol for each, symbol in enumerate(state.shown))
        after = MineState(plan, mines, state.opened, shown, state.steps + 1)
        return _step(after, f"mine at {place(cell, plan.size)}", MINE_REWARD, lost=True)
    new = _revealed(cell, mines, state.opened, plan.size)
    near, shown_cells = neighbours(plan.size), list(state.shown)
    for each in cells_of(new):
        shown_cells[each] = str((mines & near[each]).bit_count() or EMPTY)
    after = MineState(plan, mines, state.opened | new, "".join(shown_cells), state.steps + 1)
    count = new.bit_count()
    feedback = (
        f"opened {place(cell, plan.size)}" if count == 1 else f"opened {count} cells from {place(cell, plan.size)}"
    )
    return _step(after, feedback, CASCADE_REWARD if count > 1 else SINGLE_REWARD)


def _revealed(cell: int, mines: int, opened: int, size: int) -> int:
    """Bits of the cells that are opened with a cell: those around an empty one, and so on."""
    near, new, waiting = neighbours(size), 1 << cell, [cell]
    while waiting:
        around = near[waiting.pop()]
        if not around & mines:
            fresh = around & ~(opened | new)
            new |= fresh
            waiting += cells_of(fresh)
    return new


def _step(after: MineState, feedback: str, reward: float, valid: bool = True, lost: bool = False) -> Step[MineState]:
    safe = after.plan.size**2 - len(after.plan.mines)
    count = after.opened.bit_count()
    won = count == safe
    cut = not won and not lost and after.steps >= after.plan.limit
    return Step(
        after,
        after.text(),
        feedback,
        WON_REWARD if won else reward,
        won or lost or cut,
        won,
        valid,
        cut,
        count / safe,
    )
