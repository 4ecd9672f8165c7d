"""Levels 2 and 3: tables drawn from keys, and wishes whose SQL needs the skills of LifelongAgentBench.

A wish is put together of clauses; each clause brings its words, its SQL and its skill. Level 2 has up to two clauses
beyond the operation, level 3 up to four, and subqueries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coevo.configs.env import LifelongDbConfig
from coevo.envs.lifelong.convention_tasks import NAME, TaskSplit, table_data
from coevo.envs.lifelong.sql_database import SqlRow, SqlTable, executed, image_of, table_rows
from coevo.records.draws import Key, extend, generator, key, seed_of
from coevo.records.task import Task

QUERY_PANELS = {"held-out": "wishes that training leaves out"}
SPLITS: tuple[TaskSplit, ...] = ("held-out", "fresh", "train", "train")
MAX_ANSWER_ROWS = 8
"""Most rows of an answer: an agent has to write them down."""


class TableSubject(NamedTuple):
    """Subject of a table: two columns of words with their values, and two of numbers."""

    name: str
    words: tuple[tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]]]
    numbers: tuple[str, str]


SUBJECTS = (
    TableSubject(
        "orders",
        (("customer", ("Adams", "Baker", "Clark", "Diaz")), ("city", ("Oslo", "Porto", "Riga"))),
        ("quantity", "total"),
    ),
    TableSubject(
        "staff",
        (("team", ("sales", "support", "research")), ("site", ("north", "south", "west"))),
        ("salary", "years"),
    ),
    TableSubject(
        "books",
        (("author", ("Amis", "Bell", "Cole", "Dunn")), ("genre", ("crime", "poetry", "travel"))),
        ("pages", "copies"),
    ),
    TableSubject(
        "trips", (("driver", ("Ida", "Jon", "Kim")), ("zone", ("inner", "outer", "rural"))), ("distance", "fare")
    ),
    TableSubject(
        "patients", (("ward", ("east", "green", "upper")), ("doctor", ("Hall", "Ito", "Jung"))), ("age", "visits")
    ),
    TableSubject(
        "matches", (("club", ("Rovers", "United", "Wanderers")), ("venue", ("home", "away"))), ("goals", "spectators")
    ),
)


@dataclass
class _Wish:
    """A wish in the making."""

    subject: TableSubject
    rng: np.random.Generator
    hard: bool
    sql: str = ""
    words: str = ""
    ordered: bool = False
    skills: tuple[str, ...] = ()

    def chance(self) -> bool:
        """True half of the time."""
        return bool(self.rng.integers(2))

    def one(self, values: Sequence[str]) -> str:
        """One of these."""
        return values[int(self.rng.integers(len(values)))]

    def number(self) -> int:
        """A number that splits a column of numbers."""
        return int(self.rng.integers(25, 76))

    def add(self, sql: str, words: str, *skills: str) -> None:
        """Add a clause."""
        self.sql, self.words, self.skills = self.sql + sql, self.words + words, (*self.skills, *skills)


def query_sample(config: LifelongDbConfig, count: int, draw: Key, split: TaskSplit = "train") -> list[Task]:
    """``count`` tasks of a split, different ones, the four operations in turn."""
    tasks, number = dict[str, Task](), 0
    while len(tasks) < count:
        number += 1
        task = _task(config, extend(draw, number), tuple(OPERATIONS)[number % len(OPERATIONS)], split)
        if task is not None:
            tasks[task.id] = task
    return list(tasks.values())


def query_panel(config: LifelongDbConfig, size: int) -> tuple[Task, ...]:
    """First ``size`` tasks of the panel ``held-out``."""
    return tuple(query_sample(config, size, key(NAME, "panel", config.level, config.world), "held-out"))


def _task(config: LifelongDbConfig, draw: Key, operation: str, split: str) -> Task | None:
    """A task; None for a draw of another split, and for one that cannot be judged: nothing to find or to change."""
    rng = generator(draw)
    subject = SUBJECTS[int(rng.integers(len(SUBJECTS)))]
    table = _table(subject, rng)
    wish = _Wish(subject, rng, config.level == 3)
    OPERATIONS[operation](wish)
    if SPLITS[seed_of(key(NAME, "split", wish.sql, repr(table.rows))) % len(SPLITS)] != split:
        return None
    image = image_of(table)
    outcome = executed(image, wish.sql)
    reads = operation == "select"
    if outcome.failed or reads != (outcome.image == image):
        return None
    if reads and not 1 <= len(outcome.rows) <= MAX_ANSWER_ROWS:
        return None
    if not reads and table_rows(outcome.image, table.name) == table.rows:
        return None
    names = ", ".join(name for name, _ in table.columns)
    asked = f"{wish.words}. The table {table.name} has the columns {names}."
    data = {
        "sql": wish.sql, "answer": list(map(list, outcome.rows)) if reads else None, "ordered": wish.ordered,
        "skills": sorted(set(wish.skills)), "steps": config.steps, **table_data(table),
    }  # fmt: skip
    return Task(NAME, operation, asked, table.name, split, data)


def _table(subject: TableSubject, rng: np.random.Generator) -> SqlTable:
    """A table with different numbers in its rows, so that an order by them is one."""
    count = int(rng.integers(8, 15))
    columns = [(name, "VARCHAR(40)") for name, _ in subject.words] + [(name, "INT") for name in subject.numbers]
    numbers = [rng.permutation(100)[:count] for _ in subject.numbers]
    rows: tuple[SqlRow, ...] = tuple(
        (
            index + 1,
            *(values[int(rng.integers(len(values)))] for _, values in subject.words),
            *(int(column[index]) for column in numbers),
        )
        for index in range(count)
    )
    return SqlTable(subject.name, (("id", "INT"), *columns), rows)


def _condition(wish: _Wish) -> tuple[str, str]:
    """A condition on one column, in SQL and in words."""
    if wish.chance():
        name, values = wish.subject.words[int(wish.rng.integers(2))]
        value = wish.one(values)
        return f"{name} = '{value}'", f"{name} is {value}"
    name, bound = wish.one(wish.subject.numbers), wish.number()
    return (f"{name} > {bound}", f"{name} is above {bound}") if wish.chance() else (
        f"{name} < {bound}",
        f"{name} is below {bound}",
    )  # fmt: skip


def _where(wish: _Wish) -> None:
    """A condition, several, nested ones, or one with a subquery."""
    sql, words = _condition(wish)
    form = int(wish.rng.integers(6 if wish.hard else 2))
    if form == 1:
        other, said = _condition(wish)
        wish.add(f" WHERE {sql} AND {other}", f" where {words} and {said}", "where_multiple_conditions")
    elif form == 2:
        (other, said), (third, also) = _condition(wish), _condition(wish)
        wish.add(
            f" WHERE {sql} AND ({other} OR {third})",
            f" where {words}, and either {said} or {also}",
            "where_nested_conditions",
        )
    elif form > 2:
        _subquery(wish, form - 2)
    else:
        wish.add(f" WHERE {sql}", f" where {words}", "where_single_condition")


def _subquery(wish: _Wish, form: int) -> None:
    """A comparison with what another query finds: once, twice, or one within the other."""
    table, (first, second) = wish.subject.name, wish.subject.numbers
    average = f"(SELECT AVG({first}) FROM {table})"
    words = f"{first} is above the average {first} of all rows"
    if form == 1:
        wish.add(f" WHERE {first} > {average}", f" where {words}", "subquery_single")
    elif form == 2:
        wish.add(
            f" WHERE {first} > {average} AND {second} < (SELECT MAX({second}) FROM {table})",
            f" where {words}, and {second} is below the largest {second} of all rows",
            "subquery_multiple",
        )
    else:
        wish.add(
            f" WHERE {second} < (SELECT MAX({second}) FROM {table} WHERE {first} > {average})",
            f" where {second} is below the largest {second} of the rows whose {first} is above the average {first}",
            "subquery_nested",
        )


def _select(wish: _Wish) -> None:
    """Rows, or one row for each group."""
    (_groups if wish.chance() else _rows)(wish)


def _rows(wish: _Wish) -> None:
    name, number = wish.subject.words[int(wish.rng.integers(2))][0], wish.one(wish.subject.numbers)
    alias = wish.hard and wish.chance()
    shown = f"t.id AS number, t.{name}, t.{number}" if alias else f"id, {name}, {number}"
    source = f"{wish.subject.name} AS t" if alias else wish.subject.name
    aliases = ("column_alias", "table_alias") if alias else ()
    wish.add(f"SELECT {shown} FROM {source}", f"List id, {name} and {number} of all rows", "select", *aliases)
    _where(wish)
    _order(wish, number)


def _order(wish: _Wish, number: str) -> None:
    """An order of the rows, and which of them."""
    name, down = wish.subject.words[0][0], wish.chance()
    towards = ("DESC", "from high to low") if down else ("ASC", "from low to high")
    form = int(wish.rng.integers(3)) if wish.hard else int(wish.rng.integers(2))
    wish.ordered = True
    if form == 2:
        same = wish.chance()
        first = towards if same else (("ASC", "in alphabetical order") if down else ("DESC", "in reverse order"))
        wish.add(
            f" ORDER BY {name} {first[0]}, {number} {towards[0]}",
            f", ordered by {name} {first[1]}, and by {number} {towards[1]} where that is equal",
            f"order_by_multiple_columns_{'same_direction' if same else 'different_directions'}",
        )
    else:
        wish.add(f" ORDER BY {number} {towards[0]}", f", ordered by {number} {towards[1]}", "order_by_single_column")
    kept, skipped = int(wish.rng.integers(1, 4)), int(wish.rng.integers(1, 3))
    if wish.hard and form:
        wish.add(f" LIMIT {kept} OFFSET {skipped}", f", only {kept} after the first {skipped}", "limit_and_offset")
    elif form:
        wish.add(f" LIMIT {kept}", f", only the first {kept}", "limit_only")


def _groups(wish: _Wish) -> None:
    """One row for each value of a column, or of two."""
    (one, _), (two, _), number = *wish.subject.words, wish.one(wish.subject.numbers)
    both = wish.hard and wish.chance()
    columns, said = (f"{one}, {two}", f"{one} and {two}") if both else (one, one)
    wish.add(
        f"SELECT {columns}, SUM({number}) AS result FROM {wish.subject.name}",
        f"For each {said}, list {said} and the sum of {number}",
        "select",
        "column_alias",
    )
    if wish.chance():
        sql, words = _condition(wish)
        wish.add(f" WHERE {sql}", f", counting only rows where {words}", "where_single_condition")
    wish.add(f" GROUP BY {columns}", "", f"group_by_{'multiple_columns' if both else 'single_column'}")
    form = int(wish.rng.integers(4 if wish.hard else 2))
    if form == 1:
        wish.add(" HAVING COUNT(*) > 1", ", if it has more than 1 row", "having_single_condition_with_aggregate")
    elif form == 2:
        wish.add(
            f" HAVING COUNT(*) > 1 AND MAX({number}) < 95",
            f", if it has more than 1 row and a largest {number} below 95",
            "having_multiple_conditions_with_aggregate",
        )
    elif form == 3:
        wish.add(
            f" HAVING MAX({number}) - MIN({number}) > 20",
            f", if its largest {number} is more than 20 above its smallest",
            "having_aggregate_calculation",
        )


def _insert(wish: _Wish) -> None:
    (one, ones), (two, twos) = wish.subject.words
    first, second = wish.subject.numbers
    values = wish.one(ones), wish.one(twos), wish.number(), wish.number()
    number = int(wish.rng.integers(100, 200))
    wish.add(
        f"INSERT INTO {wish.subject.name} (id, {one}, {two}, {first}, {second}) "
        f"VALUES ({number}, '{values[0]}', '{values[1]}', {values[2]}, {values[3]})",
        f"Add a row with id {number}, {one} {values[0]}, {two} {values[1]}, {first} {values[2]} and "
        f"{second} {values[3]}",
        "insert",
    )


def _update(wish: _Wish) -> None:
    name, value = wish.one(wish.subject.numbers), wish.number()
    if wish.hard and wish.chance():
        name, values = wish.subject.words[1]
        word = wish.one(values)
        wish.add(f"UPDATE {wish.subject.name} SET {name} = '{word}'", f"Set {name} to {word} in all rows", "update")
    else:
        wish.add(f"UPDATE {wish.subject.name} SET {name} = {value}", f"Set {name} to {value} in all rows", "update")
    _where(wish)


def _delete(wish: _Wish) -> None:
    wish.add(f"DELETE FROM {wish.subject.name}", "Delete all rows", "delete")
    _where(wish)


OPERATIONS: dict[str, Callable[[_Wish], None]] = {
    "select": _select,
    "insert": _insert,
    "update": _update,
    "delete": _delete,
}
"""Operations by the kind of their task."""
