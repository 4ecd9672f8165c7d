"""Splits of a table: by a column, or by a keyed hash of the prompt, so that equal prompts are never on both sides."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property

from coevo.configs.base import is_name
from coevo.configs.rows_config import DEMONSTRATION, HELD_OUT, TRAIN, SplitConfig
from coevo.envs.rows.task_table import Row, TableError, TaskTable
from coevo.records.draws import Key, generator, key, seed_of
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

TOTAL = 2**64
"""Number of values of ``seed_of``."""


def text_of(row: Row, column: str | None) -> str:
    """Text of a column; empty where the row or its value is missing, a number as it is written in JSON."""
    value = None if column is None else row.get(column)
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def split_of(row: Row, config: SplitConfig) -> str:
    """Split of a row; empty where its column is."""
    if config.split is not None:
        return text_of(row, config.split)
    draw = seed_of(key("rows", "split", config.split_seed, text_of(row, config.prompt)))
    return HELD_OUT if draw < config.held_out * TOTAL else TRAIN


def rows_by_split(table: TaskTable, config: SplitConfig) -> Mapping[str, list[Row]]:
    """Rows of each split, in the order of the table.

    Raises:
        TableError: no row trains, no row is held out, or a split has no name that a panel can have.
    """
    found = defaultdict[str, list[Row]](list)
    for row in table.rows:
        found[split_of(row, config)].append(row)
    setting = f"env.split={config.split}" if config.split is not None else f"env.held_out={config.held_out:g}"
    if TRAIN not in found:
        raise TableError(f"{setting}: no row of {table.source} is in {TRAIN!r}: mark the rows to train on")
    # The gate of tables shows rows without a split.
    panels = [name for name in found if name not in (TRAIN, DEMONSTRATION, "")]
    wrong = next((name for name in panels if not is_name(name)), None)
    if wrong is not None:
        raise TableError(f"{setting}: {wrong[:60]!r} is no name of a split: use letters, digits, '.', '_' and '-'")
    if not panels:
        raise TableError(f"{setting}: no row of {table.source} is held out: mark some, or set env.held_out")
    return found


class RowTasks:
    """Tasks of a table's rows: those that train, and panels of the others.

    Args:
        table: the table.
        config: how it is split.
        task: task of a row in a split.

    Attributes:
        splits: rows by split, in the order of the table.
        panels: description of each panel by name.

    Raises:
        TableError: see ``rows_by_split``.
    """

    def __init__(self, table: TaskTable, config: SplitConfig, task: Callable[[Row, str], Task]) -> None:
        self._source, self._task, self.splits = table.source, task, rows_by_split(table, config)
        names = (name for name in self.splits if name not in (TRAIN, DEMONSTRATION, ""))
        self.panels = {name: f"rows of {name}" for name in names}

    def sample(self, count: int, draw: Key) -> list[Task]:
        """Draw training rows, each once; all of them if there are no more."""
        rows = self.splits[TRAIN]
        return [self._task(rows[index], TRAIN) for index in generator(draw).permutation(len(rows))[:count]]

    def panel(self, name: str, size: int) -> tuple[Task, ...]:
        """Held-out rows in the order of their ids, so that a smaller panel is a part of a larger one."""
        rows = self._held_out.get(name)
        if rows is None:
            raise CoevoError(f"{self._source} has the panels {', '.join(self.panels)}, not {name!r}")
        if size > len(rows):
            raise CoevoError(f"panel {name} has {len(rows)} rows, not {size}: set evaluation.tasks={len(rows)}")
        return tuple(rows[:size])

    @cached_property
    def _held_out(self) -> Mapping[str, list[Task]]:
        tasks = {name: [self._task(row, name) for row in self.splits[name]] for name in self.panels}
        return {name: sorted(found, key=lambda task: task.id) for name, found in tasks.items()}
