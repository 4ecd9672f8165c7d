"""Rules of Sokoban: pure transitions of a board, a player and boxes. Cells are numbered row by row."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from coevo.envs.base import Step
from coevo.utilities.errors import CoevoError

WALL, FLOOR, TARGET, BOX, PLAYER, PLACED, PLAYER_ON_TARGET = "#", "_", "O", "X", "P", "√", "S"
SYMBOLS = (WALL, FLOOR, TARGET, BOX, PLAYER, PLACED, PLAYER_ON_TARGET)
ACTIONS = ("up", "down", "left", "right")
MAX_SIDE = 16
"""Most cells along a side of a board."""
STEP_REWARD, BOX_REWARD, SOLVED_REWARD = -0.1, 1.0, 10.0
UNKNOWN = "nothing happens"
STUCK = "it can no longer reach a target"


class Board:
    """Walls and targets of a board.

    Attributes:
        rows: rows of symbols, walls on all sides, without player and boxes.
        side: cells of a row.
        targets: cells of the targets.
        moves: what each action adds to a cell.
    """

    def __init__(self, rows: tuple[str, ...]) -> None:
        self.rows, self.side = rows, len(rows[0])
        self._symbols = "".join(rows)
        self.targets = frozenset(self.cells(TARGET))
        self.moves: Mapping[str, int] = dict(zip(ACTIONS, (-self.side, self.side, -1, 1), strict=True))
        # Two characters per cell: its symbol, and a space or the end of the row.
        self._text = [part for row in rows for cell in row for part in (cell, " ")]
        self._text[2 * self.side - 1 :: 2 * self.side] = "\n" * len(rows)

    def __reduce__(self) -> tuple[object, ...]:
        return board_of, (self.rows,)

    def cells(self, *symbols: str) -> list[int]:
        """Cells with one of these symbols, in order."""
        return [cell for cell, symbol in enumerate(self._symbols) if symbol in symbols]

    def is_wall(self, cell: int) -> bool:
        """True if nothing can stand there."""
        return self._symbols[cell] == WALL

    def place(self, cell: int) -> str:
        """Row and column of a cell, from 1."""
        return f"{cell // self.side + 1} {cell % self.side + 1}"

    def text(self, player: int, boxes: Iterable[int]) -> str:
        """Rows of the board with player and boxes, cells separated by spaces."""
        text = self._text.copy()
        text[2 * player] = PLAYER_ON_TARGET if player in self.targets else PLAYER
        for box in boxes:
            text[2 * box] = PLACED if box in self.targets else BOX
        return "".join(text[:-1])

    @cached_property
    def pushes(self) -> Mapping[int, int]:
        """Pushes that bring a box from a cell to the nearest target if nothing else is there; no other cell can."""
        found, waiting = dict.fromkeys(self.targets, 0), deque(sorted(self.targets))
        while waiting:
            cell = waiting.popleft()
            for move in self.moves.values():
                before, player = cell - move, cell - 2 * move
                if before not in found and not self.is_wall(before) and not self.is_wall(player):
                    found[before] = found[cell] + 1
                    waiting.append(before)
        return found


@lru_cache(maxsize=4096)
def board_of(rows: tuple[str, ...]) -> Board:
    """Board of these rows, one object for all episodes of it."""
    return Board(rows)


class SokobanState(NamedTuple):
    """A point of an episode: the board, the player's cell, the boxes' cells, actions so far, and the step limit."""

    board: Board
    player: int
    boxes: frozenset[int]
    steps: int
    limit: int

    @property
    def solved(self) -> bool:
        """True if every target has a box."""
        return self.boxes == self.board.targets

    def text(self) -> str:
        """Observation."""
        return self.board.text(self.player, self.boxes)


def read(rows: Sequence[str], limit: int) -> SokobanState:
    """First state of a board that is written with player and boxes.

    Raises:
        CoevoError: the rows are no board.
    """
    text, side = "".join(rows), len(rows[0]) if rows else 0
    edges = "".join((*rows[:1], *rows[-1:], *(row[:1] + row[-1:] for row in rows)))
    sound = 3 <= side <= MAX_SIDE and 3 <= len(rows) <= MAX_SIDE and {*map(len, rows)} == {side} and {*edges} == {WALL}
    players = [cell for cell, symbol in enumerate(text) if symbol in (PLAYER, PLAYER_ON_TARGET)]
    boxes = frozenset(cell for cell, symbol in enumerate(text) if symbol in (BOX, PLACED))
    targets = sum(text.count(symbol) for symbol in (TARGET, PLACED, PLAYER_ON_TARGET))
    if not sound or not {*text} <= {*SYMBOLS} or len(players) != 1 or not boxes or len(boxes) != targets:
        raise CoevoError(
            f"board {'/'.join(rows)[:80]!r}: rows of {' '.join(SYMBOLS)} are needed, equally long, with walls on all "
            f"sides, one player, and as many boxes as targets"
        )
    bare = str.maketrans({BOX: FLOOR, PLAYER: FLOOR, PLACED: TARGET, PLAYER_ON_TARGET: TARGET})
    return SokobanState(board_of(tuple(row.translate(bare) for row in rows)), players[0], boxes, 0, limit)


def advance(state: SokobanState, action: str) -> Step[SokobanState]:
    """Take one action; one that is no direction changes nothing, but costs a step."""
    board, player, boxes, steps, limit = state
    word = action.strip().lower() if len(action) < MAX_SIDE else ""
    move, reward, steps = board.moves.get(word, 0), STEP_REWARD, steps + 1
    there = player + move
    if not move:
        feedback = UNKNOWN
    elif board.is_wall(there):
        feedback = f"{word} is blocked by a wall"
    elif there not in boxes:
        player, feedback = there, f"moved {word}"
    elif board.is_wall(there + move) or there + move in boxes:
        feedback = f"{word} is blocked by a box with a {'box' if there + move in boxes else 'wall'} behind it"
    else:
        player, boxes = there, boxes - {there} | {there + move}
        gained = (there + move in board.targets) - (there in board.targets)
        reward += gained * BOX_REWARD
        feedback = f"pushed a box {word}{_PUSHED[gained]}"
        if there + move not in board.pushes:
            feedback = f"{feedback} . {STUCK} from {board.place(there + move)}"
    after, solved = SokobanState(board, player, boxes, steps, limit), boxes == board.targets
    over = not solved and steps >= limit
    return Step(
        after,
        board.text(player, boxes),
        feedback,
        reward + SOLVED_REWARD * solved,
        solved or over,
        solved,
        move != 0,
        over,
        len(boxes & board.targets) / len(boxes),
    )


_PUSHED = ("", " onto a target", " off a target")
"""End of the feedback by the boxes that a push brings onto targets: 0, 1, -1."""
