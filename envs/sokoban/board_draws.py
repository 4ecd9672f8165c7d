"""Boards drawn from keys, and their splits: a hash of a board decides, the same for its mirrored and turned forms."""

from functools import lru_cache
from typing import Literal

import numpy as np

from coevo.configs.env import SokobanConfig
from coevo.envs.sokoban.board import BOX, FLOOR, PLACED, PLAYER, PLAYER_ON_TARGET, TARGET, WALL, SokobanState, read
from coevo.envs.sokoban.solver import MAX_DRAWN, solution
from coevo.records.draws import Key, extend, generator, key, seed_of
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

NAME = "sokoban"
BoardSplit = Literal["held-out", "fresh", "train"]
_SPLITS: tuple[BoardSplit, ...] = ("held-out", "fresh", "train", "train")
"""Split of a board by its hash; ``fresh`` boards are for cloning and its probe."""
PANELS = {
    "held-out": "boards that training leaves out",
    "more-boxes": "boards that training leaves out, with one more box",
}
WALL_SHARE = 0.25
"""Largest share of the inner cells that are walls."""
MAX_DRAWS = 300
"""Draws in a row without a new board after which a split counts as used up."""
MAX_TRIES = 50_000
"""Draws for one board after which there counts as none."""
MIN_SOLUTION = 5
"""Fewest actions of a shortest solution."""


def sample(config: SokobanConfig, count: int, draw: Key, split: BoardSplit = "train") -> list[Task]:
    """``count`` different tasks of a split."""
    return [_task(config, rows, split) for rows in _boards(config, split, count, draw)]


@lru_cache(maxsize=16)
def panel(config: SokobanConfig, name: str, size: int) -> tuple[Task, ...]:
    """First ``size`` tasks of a panel. Raises ``CoevoError`` for an unknown name."""
    if name not in PANELS:
        raise CoevoError(f"panel {name!r} is not one of {NAME}: choose one of {', '.join(PANELS)}")
    harder = config.model_copy(update={"boxes": config.boxes + (name == "more-boxes")})
    boards = _boards(harder, "held-out", size, key(NAME, "panel", name))
    return tuple(_task(harder, rows, name) for rows in boards)


def state_of(task: Task) -> SokobanState:
    """First state of a task.

    Raises:
        CoevoError: the task is of another environment, or its board is none.
    """
    if task.env != NAME:
        raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {NAME!r}: start it there")
    return read(tuple(task.data["board"]), int(task.data["steps"]))


def split_of(rows: tuple[str, ...]) -> BoardSplit:
    """Split that a board belongs to."""
    sides = ("/".join(rows), "/".join(map("".join, zip(*rows, strict=True))))
    # Read backwards, a text is turned by half; with its rows backwards, it is mirrored.
    mirrored = ("/".join(side.split("/")[::-1]) for side in sides)
    least = min(form for side in (*sides, *mirrored) for form in (side, side[::-1]))
    return _SPLITS[seed_of(key(NAME, "split", least)) % len(_SPLITS)]


def _task(config: SokobanConfig, rows: tuple[str, ...], split: str) -> Task:
    boxes = f"{config.boxes} box{'es' if config.boxes > 1 else ''}"
    data = {"board": list(rows), "steps": config.steps}
    return Task(NAME, boxes, f"push {boxes} onto targets", f"{config.size} x {config.size} with {boxes}", split, data)


def _boards(config: SokobanConfig, split: BoardSplit, count: int, draw: Key) -> list[tuple[str, ...]]:
    boards, number, since = dict[tuple[str, ...], None](), 0, 0
    while len(boards) < count:
        rows = _board(config, split, extend(draw, number))
        number, since = number + 1, since + 1 if rows in boards else 0
        boards[rows] = None
        if since == MAX_DRAWS:
            sort = f"{config.size} x {config.size} with {config.boxes} box(es)"
            raise CoevoError(f"{NAME} has {len(boards)} boards of {sort} for {split}, not {count}: request fewer")
    return list(boards)


@lru_cache(maxsize=4096)
def _board(config: SokobanConfig, split: BoardSplit, draw: Key) -> tuple[str, ...]:
    """A board of a split that can be solved within the step limit."""
    rng = generator(draw)
    for _ in range(MAX_TRIES):
        rows = _drawn(config, rng)
        if rows is None or split_of(rows) != split:
            continue
        shortest = solution(read(rows, config.steps), MAX_DRAWN)
        if shortest is not None and MIN_SOLUTION <= len(shortest) <= config.steps:
            return rows
    sort = f"{config.size} x {config.size} with {config.boxes} box(es)"
    raise CoevoError(f"{NAME} found no board of {sort} for {split} in {MAX_TRIES} draws: take larger boards")


def _drawn(config: SokobanConfig, rng: np.random.Generator) -> tuple[str, ...] | None:
    """Random walls, targets, boxes and player; None if the floor is not connected."""
    side = config.size
    inner = [row * side + column for row in range(1, side - 1) for column in range(1, side - 1)]
    walls = int(rng.integers(int(WALL_SHARE * len(inner)) + 1))
    order = [inner[index] for index in rng.permutation(len(inner))]
    floor = order[walls:]
    if not _connected(set(floor), side):
        return None
    targets, boxes = set(floor[: config.boxes]), {floor[index] for index in _chosen(len(floor), config.boxes, rng)}
    player = next(cell for cell in reversed(floor) if cell not in boxes)
    symbols = {cell: TARGET if cell in targets else FLOOR for cell in floor}
    symbols |= {cell: PLACED if cell in targets else BOX for cell in boxes}
    symbols[player] = PLAYER_ON_TARGET if player in targets else PLAYER
    return tuple("".join(symbols.get(row * side + column, WALL) for column in range(side)) for row in range(side))


def _chosen(count: int, size: int, rng: np.random.Generator) -> list[int]:
    return [int(index) for index in rng.permutation(count)[:size]]


def _connected(floor: set[int], side: int) -> bool:
    start = min(floor)
    seen, waiting = {start}, [start]
    while waiting:
        cell = waiting.pop()
        near = {cell + 1, cell - 1, cell + side, cell - side} & floor - seen
        seen |= near
        waiting += near
    return seen == floor
