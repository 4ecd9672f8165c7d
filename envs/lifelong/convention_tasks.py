"""Level 1: tasks on databases whose conventions no prompt gives away, and that outcomes reveal.

A world has databases with a table of goods. In each of them one of three columns holds the price that customers pay,
and one of three numbers stands for "sold".
"""

from typing import Literal, NamedTuple

from coevo.configs.env import LifelongDbConfig
from coevo.envs.lifelong.sql_database import SqlRow, SqlTable
from coevo.records.draws import Key, extend, generator, key, seed_of
from coevo.records.entry import Entry, entry_id
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

NAME = "lifelong-db"
DATABASES = (
    "alder", "birch", "clover", "daisy", "elder", "fern", "gorse", "hazel",
    "iris", "juniper", "laurel", "mallow", "nettle", "olive", "poppy", "rowan",
)  # fmt: skip
GOODS = ("pear", "plum", "lime", "fig", "kiwi", "melon", "grape", "quince")
PRICES, CODES = ("net", "gross", "list_price"), (1, 2, 3)
COLUMNS = (("name", "VARCHAR(20)"), *((name, "INT") for name in PRICES), ("state", "INT"))
TABLE, FULL = "goods", 4
"""Name of the table, and its number of rows."""
NUMBERS = range(1, 31)
ConventionFamily = Literal["price", "sell"]
FAMILIES: tuple[ConventionFamily, ...] = ("price", "sell")
CONVENTION_PANELS = {
    "held-out": "the training databases, on days that training leaves out",
    "no-bank": "the same tasks, without the bank",
    "other-facts": "databases of the same names with other conventions, all given as notes",
}
TaskSplit = Literal["train", "held-out", "fresh"]


class Conventions(NamedTuple):
    """Hidden conventions of a database: the column of the price, and the number for "sold"."""

    price: str
    sold: int


def conventions(world: str, database: str) -> Conventions:
    """Conventions of a database in a world."""
    rng = generator(key(NAME, world, database))
    return Conventions(PRICES[rng.integers(3)], CODES[rng.integers(3)])


def convention_notes(database: str, facts: Conventions) -> tuple[str, str]:
    """The notes that are true with these facts, about the price and about the number for "sold"."""
    price, sold = told("price", facts.price), told("sell", facts.sold)
    return f"{database} {price}", f"{database} {sold}"


def sample(config: LifelongDbConfig, count: int, draw: Key, split: TaskSplit = "train") -> list[Task]:
    """``count`` tasks of a split, different ones."""
    tasks, number = dict[str, Task](), 0
    while len(tasks) < count:
        rng, number = generator(extend(draw, number)), number + 1
        world = f"fresh/{seed_of(extend(draw, number)):016x}" if split == "fresh" else f"train/{config.world}"
        database = DATABASES[rng.integers(len(DATABASES) if split == "fresh" else config.databases)]
        task = _task(config, world, database, FAMILIES[rng.integers(2)], int(rng.integers(1 << 30)), split)
        if split == "fresh" or (_held_out(task) == (split == "held-out")):
            tasks[task.id] = task
    return list(tasks.values())


def convention_panel(config: LifelongDbConfig, name: str, size: int) -> tuple[Task, ...]:
    """First ``size`` tasks of a panel, the databases in turn."""
    world = f"other/{config.world}" if name == "other-facts" else f"train/{config.world}"
    tasks, number = list[Task](), 0
    while len(tasks) < size:
        database, family = DATABASES[len(tasks) % config.databases], FAMILIES[len(tasks) // config.databases % 2]
        task = _task(config, world, database, family, seed_of(key(NAME, "panel", number)) % (1 << 30), name)
        number += 1
        if _held_out(task):
            tasks.append(task)
    return tuple(tasks)


def convention_bank(config: LifelongDbConfig, name: str) -> list[Entry] | None:
    """Bank of a panel: None for the run's own, an empty list for ``no-bank``, all notes for ``other-facts``."""
    if name != "other-facts":
        return [] if name == "no-bank" else None
    facts = {database: conventions(f"other/{config.world}", database) for database in DATABASES[: config.databases]}
    return [_entry(name, note) for name, found in facts.items() for note in convention_notes(name, found)]


def told(family: str, used: object, right: bool = True) -> str:
    """Feedback to an answer: whether a column or a number is the convention. A note has the database before it."""
    subject = "price is {}column" if family == "price" else "sold is {}state"
    return f"answer {subject.format('' if right else 'not ')} {used}"


def _held_out(task: Task) -> bool:
    return seed_of(key(NAME, "split", task.kind, task.scope, task.data["day"])) % 4 == 0


def _task(config: LifelongDbConfig, world: str, database: str, family: ConventionFamily, day: int, split: str) -> Task:
    facts, rng = conventions(world, database), generator(key(NAME, "rows", world, database, day))
    goods = [GOODS[index] for index in rng.permutation(len(GOODS))[:FULL]]
    # The three prices of a row differ, so that an answer shows which column it comes from.
    rows: list[SqlRow] = [
        (each, *(int(NUMBERS[index]) for index in rng.permutation(len(NUMBERS))[:3]), 0) for each in goods
    ]
    wanted = goods[rng.integers(FULL)]
    asked, sql = {
        "price": (f"price of {wanted} ?", f"SELECT {facts.price} FROM {TABLE} WHERE name = '{wanted}'"),
        "sell": (f"mark {wanted} as sold", f"UPDATE {TABLE} SET state = {facts.sold} WHERE name = '{wanted}'"),
    }[family]
    row = next(row for row in rows if row[0] == wanted)
    answer = [[row[1 + PRICES.index(facts.price)]]] if family == "price" else None
    table = SqlTable(TABLE, COLUMNS, tuple(rows))
    data = {
        "day": day, "wanted": wanted, "price": facts.price, "sold": facts.sold, "sql": sql, "answer": answer,
        "ordered": True, "steps": config.steps, **table_data(table),
    }  # fmt: skip
    return Task(NAME, family, f"database {database} . {asked}", database, split, data)


def table_data(table: SqlTable) -> dict[str, object]:
    """A table as values of a task."""
    return {"table": table.name, "columns": [list(each) for each in table.columns], "rows": list(map(list, table.rows))}


def _entry(database: str, text: str) -> Entry:
    return Entry(
        id=entry_id(database, text),
        strategy=text,
        condition=database,
        example="",
        keywords=f"{database} {text}",
        scope=database,
        split="train",
        sources=(),
        created=0,
        edited=0,
    )


def checked_panel(name: str, panels: dict[str, str]) -> None:
    """Check the name of a panel.

    Raises:
        CoevoError: there is no such panel.
    """
    if name not in panels:
        raise CoevoError(f"panel {name!r} is not one of {NAME}: choose one of {', '.join(panels)}")
