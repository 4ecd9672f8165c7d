"""Splits of a table: by a column, or by a keyed hash of the prompt, so that equal prompts are never on both sides."""

from collections import defaultdict
from collections.abc import Mapping

from coevo.configs.base import is_name
from coevo.configs.rows_config import DEMONSTRATION, HELD_OUT, TRAIN, RowsConfig
from coevo.envs.rows.task_table import Row, TableError, TaskTable
from coevo.records.draws import key, seed_of

TOTAL = 2**64
"""Number of values of ``seed_of``."""


def text_of(row: Row, column: str | None) -> str:
    """Text of a column; empty where the row or its value is missing, a number as it is written in JSON."""
    value = None if column is None else row.get(column)
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def split_of(row: Row, config: RowsConfig) -> str:
    """Split of a row; empty where its column is."""
    if config.split is not None:
        return text_of(row, config.split)
    draw = seed_of(key("rows", "split", config.split_seed, text_of(row, config.prompt)))
    return HELD_OUT if draw < config.held_out * TOTAL else TRAIN


def rows_by_split(table: TaskTable, config: RowsConfig) -> Mapping[str, list[Row]]:
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
