"""Fields drawn from keys, their splits, and the notes that are true of a field which keeps its mines.

Fields of their own: a hash of the mines decides the split, the same for mirrored and turned fields. Named fields keep
their mines through all tasks, which differ in the cell that is open at the start: a hash of field and cell decides.
"""

from functools import lru_cache
from typing import Literal

from coevo.configs.env import MineSweeperConfig
from coevo.envs.minesweeper.minefield import FieldPlan, MineState, begin, opened_at, place
from coevo.records.draws import Key, extend, generator, key, seed_of
from coevo.records.entry import Entry, entry_id
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

NAME = "minesweeper"
FIELDS = (
    "amber", "basil", "cedar", "delta", "ember", "flint", "grove", "heath", "islet", "knoll", "ledge",
    "marsh", "north", "orchard", "prairie", "quarry", "ridge", "shore", "thicket", "upland", "vale",
    "willow", "acre", "bluff", "copse", "dune", "fen", "glade", "hollow", "inlet", "jetty", "lagoon",
)  # fmt: skip
"""Names of fields that keep their mines."""
FieldSplit = Literal["held-out", "fresh", "train"]
_SPLITS: tuple[FieldSplit, ...] = ("held-out", "fresh", "train", "train")
MORE_MINES = {"held-out": 0, "one-more": 1, "two-more": 2}
OWN_FIELDS = {
    "held-out": "fields that training leaves out",
    "one-more": "fields that training leaves out, with one more mine",
    "two-more": "fields that training leaves out, with two more mines",
}
NAMED_FIELDS = {
    "held-out": "the training fields, from cells that training leaves out",
    "no-bank": "the same tasks, without the bank",
    "other-mines": "fields of the same names with other mines, all given as notes",
}
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""Words for numbers of mines."""
MAX_DRAWS = 1_000
"""Draws in a row without a new field after which a split counts as used up."""


def panels(config: MineSweeperConfig) -> dict[str, str]:
    """Panels by name, each with its description."""
    return NAMED_FIELDS if config.fields else OWN_FIELDS


def sample(config: MineSweeperConfig, count: int, draw: Key, split: FieldSplit = "train") -> list[Task]:
    """``count`` tasks of a split, different ones as long as there are enough."""
    if not config.fields:
        return _own(config, 0, split, count, draw)
    if split == "fresh":
        return [_fresh(config, extend(draw, index)) for index in range(count)]
    every = [task for name in FIELDS[: config.fields] for task in _of_field(config, _train(config), name, False)]
    order = generator(draw).permutation(len(every))
    return [every[order[index % len(order)]] for index in range(count)]


@lru_cache(maxsize=16)
def panel(config: MineSweeperConfig, name: str, size: int) -> tuple[Task, ...]:
    """First ``size`` tasks of a panel. Raises ``CoevoError`` for an unknown name, and if it has fewer."""
    if name not in panels(config):
        raise CoevoError(f"panel {name!r} is not one of {NAME}: choose one of {', '.join(panels(config))}")
    if not config.fields:
        return tuple(_own(config, MORE_MINES[name], "held-out", size, key(NAME, "panel", name), name))
    world = f"other/{config.world}" if name == "other-mines" else _train(config)
    every = [_of_field(config, world, field, True, name) for field in FIELDS[: config.fields]]
    most = min(map(len, every)) * len(every)
    if size > most:
        raise CoevoError(f"panel {name!r} has {most} tasks with env.fields={config.fields}, not {size}: request fewer")
    return tuple(every[index % len(every)][index // len(every)] for index in range(size))


def panel_bank(config: MineSweeperConfig, name: str) -> list[Entry] | None:
    """Bank of a panel: None for the run's own, an empty list for ``no-bank``, all mines for ``other-mines``."""
    if name == "no-bank":
        return []
    if name != "other-mines":
        return None
    world = f"other/{config.world}"
    return [_entry(field, note) for field in FIELDS[: config.fields] for note in notes(config, world, field)]


def notes(config: MineSweeperConfig, world: str, field: str) -> list[str]:
    """True notes of a named field, one for each mine."""
    return [note(field, mine, config.size) for mine in _mines(config, world, field)]


def note(field: str, mine: int, size: int) -> str:
    """Note that names a mine: the field, and the feedback of an action that hits it."""
    return f"{field} mine at {place(mine, size)}"


def state_of(task: Task) -> MineState:
    """First state of a task.

    Raises:
        CoevoError: the task is of another environment, or its field is none.
    """
    if task.env != NAME:
        raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {NAME!r}: start it there")
    data = task.data
    size, mines, spare, first = int(data["size"]), tuple(data["mines"]), int(data["spare"]), data["first"]
    cells = range(size * size)
    if (
        not 2 <= size <= 16
        or len({*mines, spare}) != len(mines) + 1
        or not all(cell in cells for cell in (*mines, spare))
    ):
        raise CoevoError(
            f"task {task.id}: a field has mines and a spare cell, all different, on 2 x 2 to 16 x 16 cells"
        )
    state = begin(FieldPlan(size, mines, spare, int(data["steps"]), data.get("view") == "places"))
    return state if first is None else opened_at(state, int(first))


def _own(config: MineSweeperConfig, more: int, split: FieldSplit, count: int, draw: Key, panel: str = "") -> list[Task]:
    """Different tasks, each on a field of its own."""
    size, mines = config.size, config.mines + more
    scope = f"{size} x {size} with {mines} mines"
    tasks, number, since = dict[str, Task](), 0, 0
    while len(tasks) < count and since < MAX_DRAWS:
        order = [int(cell) for cell in generator(extend(draw, number)).permutation(size * size)[: mines + 1]]
        number, since = number + 1, since + 1
        if _split_of(frozenset(order[:-1]), size) == split:
            task = _task(config, sorted(order[:-1]), order[-1], None, scope, panel or split)
            since = since if task.id in tasks else 0
            tasks[task.id] = task
    if len(tasks) < count:
        raise CoevoError(f"{NAME} has {len(tasks)} fields of {scope} for {panel or split}, not {count}: request fewer")
    return list(tasks.values())


def _split_of(mines: frozenset[int], size: int) -> FieldSplit:
    places = [divmod(mine, size) for mine in mines]
    last = size - 1
    forms = [
        sorted((last - y if up else y, last - x if left else x) for y, x in turned)
        for turned in (places, [(x, y) for y, x in places])
        for up in (False, True)
        for left in (False, True)
    ]
    least = " ".join(f"{y},{x}" for y, x in min(forms))
    return _SPLITS[seed_of(key(NAME, "split", size, least)) % len(_SPLITS)]


def _train(config: MineSweeperConfig) -> str:
    return f"train/{config.world}"


def _mines(config: MineSweeperConfig, world: str, field: str) -> list[int]:
    rng = generator(key(NAME, world, field, config.size, config.mines))
    return sorted(int(cell) for cell in rng.permutation(config.size**2)[: config.mines])


def _of_field(config: MineSweeperConfig, world: str, field: str, held_out: bool, split: str = "train") -> list[Task]:
    """Tasks of a named field, in a fixed random order: one for each safe cell of the split."""
    mines, cells = _mines(config, world, field), _safe(config, world, field)
    third = len(cells) // 3
    chosen = cells[:third] if held_out else cells[third:]
    return [_task(config, mines, cell, cell, field, split) for cell in chosen]


def _safe(config: MineSweeperConfig, world: str, field: str) -> list[int]:
    """Cells without a mine, in a fixed random order."""
    mines = _mines(config, world, field)
    order = generator(key(NAME, "order", world, field)).permutation(config.size**2)
    return [int(cell) for cell in order if cell not in mines]


def _fresh(config: MineSweeperConfig, draw: Key) -> Task:
    """A task of a named field in a world of its own."""
    world, rng = f"fresh/{seed_of(draw):016x}", generator(draw)
    field = FIELDS[rng.integers(len(FIELDS))]
    safe = _safe(config, world, field)
    cell = safe[rng.integers(len(safe))]
    return _task(config, _mines(config, world, field), cell, cell, field, "fresh")


def _task(config: MineSweeperConfig, mines: list[int], spare: int, first: int | None, scope: str, split: str) -> Task:
    kind = f"{len(mines)} mines"
    named = f"field {scope} . " if first is not None else ""
    # No word of it is in feedback but "mine": only what names a mine is quoted as a note.
    wish = f"clear every cell without a mine . {COUNTS[len(mines)]} mines"
    data = {"size": config.size, "mines": mines, "spare": spare, "first": first, "steps": config.limit}
    data |= {"view": config.view} if config.view != "grid" else {}
    return Task(NAME, kind, f"{named}{wish}", scope, split, data)


def _entry(field: str, text: str) -> Entry:
    return Entry(
        id=entry_id(field, text),
        strategy=text,
        condition=field,
        example="",
        keywords=f"{field} mine",
        scope=field,
        split="train",
        sources=(),
        created=0,
        edited=0,
    )
