"""The files of LifelongAgentBench: tasks of its database and of its shell, read as data.

A folder holds ``entry_dict.json`` files, each an object of tasks by number; the fields of a task say of which kind it
is. Texts are bounded, and nothing of a file is executed here: a database task runs in SQLite, a script in the sandbox.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from coevo.envs.failures import one_line
from coevo.utilities.errors import CoevoError

MAX_FILE_BYTES = 1 << 28
"""Most bytes of a file."""
MAX_TEXT_CHARS = 20_000
"""Most characters of an instruction, a script or a statement."""
MAX_TABLE_ROWS, MAX_TABLE_COLUMNS = 200, 40


class PublishedSql(NamedTuple):
    """A task of the database: ``direct`` are the rows of its answer, None where the table is judged."""

    number: str
    instruction: str
    table: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[int | float | str | None, ...], ...]
    sql: str
    direct: tuple[tuple[int | float | str | None, ...], ...] | None
    skills: tuple[str, ...]


class PublishedShell(NamedTuple):
    """A task of the shell: scripts that prepare it, solve it and judge it."""

    number: str
    instruction: str
    setup: str
    solution: str
    judge: str
    skills: tuple[str, ...]


class PublishedFiles(NamedTuple):
    """All tasks of a folder, and a hash of its files."""

    hash: str
    sql: tuple[PublishedSql, ...]
    shell: tuple[PublishedShell, ...]


def published(folder: Path) -> PublishedFiles:
    """Read all JSON files of a folder and of those below it.

    Raises:
        CoevoError: there is none, or one is no file of LifelongAgentBench.
    """
    paths = sorted(path for path in folder.rglob("*.json") if path.name not in ("dataset_info.json",))
    if not paths:
        raise CoevoError(f"env.path={folder}: has no entry_dict.json: name the folder of LifelongAgentBench's data")
    digest, sql, shell = sha256(), list[PublishedSql](), list[PublishedShell]()
    for path in paths:
        data = _bytes(path)
        digest.update(data)
        try:
            for task in _tasks(data):
                if isinstance(task, PublishedSql):
                    sql.append(task)
                else:
                    shell.append(task)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            reason = one_line(f"{type(error).__name__}: {error}", 120)
            raise CoevoError(f"{path}: is no file of LifelongAgentBench: {reason}") from None
    return PublishedFiles(digest.hexdigest()[:12], tuple(sql), tuple(shell))


def _bytes(path: Path) -> bytes:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise CoevoError(f"{path}: has {size} bytes, and at most {MAX_FILE_BYTES} are read")
    return path.read_bytes()


def _tasks(data: bytes) -> Iterator[PublishedSql | PublishedShell]:
    entries = json.loads(data)
    numbered = enumerate(entries) if isinstance(entries, list) else entries.items()
    for number, entry in numbered:
        if "table_info" in entry:
            yield _of_sql(str(number), entry)
        elif "initialization_command_item" in entry:
            found = _of_shell(str(number), entry)
            if found is not None:
                yield found


def _of_sql(number: str, entry: Mapping[str, Any]) -> PublishedSql:
    table, answer = entry["table_info"], entry["answer_info"]
    columns = tuple((_text(each["name"]), _text(each["type"])) for each in table["column_info_list"])
    rows = tuple(_row(row) for row in table["row_list"])
    if len(rows) > MAX_TABLE_ROWS or len(columns) > MAX_TABLE_COLUMNS or {len(row) for row in rows} - {len(columns)}:
        raise ValueError(f"the table of task {number} has {len(rows)} rows and {len(columns)} columns")
    direct = answer["direct"]
    return PublishedSql(
        number,
        _text(entry["instruction"]),
        _text(table["name"]),
        columns,
        rows,
        _text(answer["sql"]),
        None if direct is None else tuple(_row(row) for row in direct),
        _skills(entry),
    )


def _of_shell(number: str, entry: Mapping[str, Any]) -> PublishedShell | None:
    """A task; None if one of its scripts is not for bash."""
    judged = entry["evaluation_info"]
    items = (
        entry["initialization_command_item"],
        judged["ground_truth_command_item"],
        judged["evaluation_command_item"],
    )
    if any(item["command_name"] != "bash" for item in items):
        return None
    setup, solution, judge = (_text(item["script"]) for item in items)
    return PublishedShell(number, _text(entry["instruction"]), setup, solution, judge, _skills(entry))


def _row(row: Any) -> tuple[int | float | str | None, ...]:
    if not isinstance(row, list) or not all(value is None or isinstance(value, int | float | str) for value in row):
        raise ValueError("a row has to be a list of numbers and texts")
    return tuple(row)


def _skills(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(_text(each) for each in entry["skill_list"])


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
        raise ValueError(f"{type(value).__name__} instead of a text of at most {MAX_TEXT_CHARS} characters")
    value.encode()
    return value
