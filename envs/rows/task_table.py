"""Rows of a table: read from a file, checked value by value, and identified by the hash of their content.

Nothing that a file holds is executed or unpickled: JSON Lines and CSV are text, and Parquet and Arrow files hold typed
columns. A saved ``Dataset`` is read as the Arrow files that it consists of.
"""

import csv
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coevo.utilities.errors import ConfigError

Row = Mapping[str, Any]
"""Values of a row by column: text, numbers, truth values, null, and lists and mappings of these."""
MAX_TABLE_ROWS = 10**6
"""Most rows of a table."""
MAX_LINE_CHARS = 2**24
"""Most characters of a line, and bytes of a row's JSON."""
MAX_DEPTH = 20
"""Most levels of a value."""
SAVED = ("dataset_dict.json", "state.json")
"""Files by which a folder of ``Dataset.save_to_disk`` is known: of several splits, of one."""


class TableError(ConfigError):
    """A table that cannot be read: names the file, the row and what would be right."""


@dataclass(frozen=True)
class TaskTable:
    """Rows in the order of their file.

    Attributes:
        source: where they were read, for messages.
        rows: the rows.
    """

    source: str
    rows: tuple[Row, ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over the rows in their order, whatever the format of their file."""
        total = hashlib.sha256()
        for row in self.rows:
            total.update(canonical(row).encode() + b"\n")
        return total.hexdigest()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns of any row, in the order of their first row."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def require(self, column: str, setting: str) -> None:
        """Check that a column occurs. Raises ``TableError``."""
        if column not in self.columns:
            shown = ", ".join(self.columns[:20])
            raise TableError(f"{setting}={column}: {self.source} has no such column; it has {shown}: name one of these")


def canonical(row: Row) -> str:
    """A row as JSON that does not depend on the order of its columns."""
    return json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def table_of(rows: Iterable[Any], source: str) -> TaskTable:
    """Check rows, one by one.

    Raises:
        TableError: there is none, there are too many, or one is no mapping of names to JSON values.
    """
    checked = list[Row]()
    for number, row in enumerate(rows, start=1):
        if number > MAX_TABLE_ROWS:
            raise TableError(f"{source}: it has more than {MAX_TABLE_ROWS} rows: leave some out")
        checked.append(_checked(row, f"{source}, row {number}"))
    if not checked:
        raise TableError(f"{source}: it has no row: name a table with one task per row")
    return TaskTable(source, tuple(checked))


def load_table(path: str) -> TaskTable:
    """Read a table; one that has not changed since the last time comes from memory.

    Args:
        path: file, folder of a saved ``Dataset``, or ``package:file``.

    Raises:
        TableError: there is no such file, or it is no table.
    """
    there = _resolved(path)
    try:
        files = sorted(there.rglob("*")) if there.is_dir() else [there]
        stamps = [(str(file), status.st_size, status.st_mtime_ns) for file in files if (status := file.stat())]
    except OSError as error:
        raise _unreadable(path, error) from None
    return _read(path, there, tuple(stamps))


@lru_cache(maxsize=2)
def _read(path: str, there: Path, stamps: tuple[tuple[str, int, int], ...]) -> TaskTable:
    try:
        return table_of(_reader(path, there)(there), path)
    except OSError as error:
        raise _unreadable(path, error) from None
    except UnicodeDecodeError:
        raise TableError(f"env.path={path}: it is not UTF-8: save it in this encoding") from None
    except (pa.ArrowException, csv.Error) as error:
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"env.path={path}: not readable ({reason}): name a .jsonl, .csv or .parquet file") from None


def _unreadable(path: str, error: OSError) -> TableError:
    return TableError(
        f"env.path={path}: {error.strerror or error}: put the table there, or continue the run as a branch with "
        "env.path=FILE"
    )


def _resolved(path: str) -> Path:
    """Path of a table; that of ``package:file`` is inside the package."""
    package, colon, name = path.partition(":")
    if not colon or not package.replace(".", "").isidentifier() or Path(path).exists():
        return Path(path)
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        found = None
    folders = [] if found is None else list(found.submodule_search_locations or ())
    if not folders:
        raise TableError(f"env.path={path}: there is no package {package}: install it, or name a file")
    return Path(folders[0]) / name


def _reader(path: str, there: Path) -> Callable[[Path], Iterable[Any]]:
    readers: Mapping[str, Callable[[Path], Iterable[Any]]] = {
        ".jsonl": _json_lines,
        ".csv": _comma_separated,
        ".parquet": _parquet,
    }
    if there.is_dir():
        return _saved
    if there.suffix.lower() not in readers:
        raise TableError(
            f"env.path={path}: no table: name a .jsonl, .csv or .parquet file, or a folder of Dataset.save_to_disk"
        )
    return readers[there.suffix.lower()]


def _json_lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _parsed(line, f"env.path={path}, line {number}")


def _parsed(line: str, place: str) -> Any:
    if len(line) > MAX_LINE_CHARS:
        raise TableError(f"{place}: longer than {MAX_LINE_CHARS} characters: shorten it")
    try:
        return json.loads(line, object_pairs_hook=_without_repetition, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{place}: no JSON object ({str(error)[:100]}): write one row per line") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands in it twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _comma_separated(path: Path) -> Iterator[Any]:
    """Rows of a CSV file, whose first line names the columns. Values are text, empty ones null: CSV has no types."""
    csv.field_size_limit(MAX_LINE_CHARS)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        header = next(lines, [])
        if len(set(header)) < len(header) or not all(header):
            raise TableError(f"env.path={path}, line 1: it names a column twice, or none: name each column once")
        for values in lines:
            if values and len(values) != len(header):
                raise TableError(
                    f"env.path={path}, line {lines.line_num}: it has {len(values)} values for {len(header)} columns: "
                    "write one per column, texts with commas in quotes"
                )
            if values:
                yield {name: value or None for name, value in zip(header, values, strict=True)}


def _parquet(path: Path) -> Iterator[Any]:
    with pq.ParquetFile(path) as file:
        _check_distinct(file.schema_arrow, path)
        for batch in file.iter_batches():
            yield from batch.to_pylist()


def _saved(folder: Path) -> Iterator[Any]:
    """Rows of a saved ``Dataset``; those of several splits get the column ``split``."""
    several = folder / SAVED[0]
    if not several.is_file():
        yield from _arrow_files(folder)
        return
    for split in _json_file(several, "splits"):
        if not isinstance(split, str) or Path(split).name != split:
            raise TableError(f"env.path={folder}: {split!r:.80} is no name of a split: save the dataset again")
        yield from ({"split": split, **row} for row in _arrow_files(folder / split))


def _arrow_files(folder: Path) -> Iterator[dict[str, Any]]:
    state = folder / SAVED[1]
    if not state.is_file():
        raise TableError(
            f"env.path={folder}: no saved dataset: name a folder that Dataset.save_to_disk wrote, or a file"
        )
    for entry in _json_file(state, "_data_files"):
        name = entry.get("filename") if isinstance(entry, dict) else None
        if not isinstance(name, str) or Path(name).name != name:
            raise TableError(f"env.path={folder}: {name!r:.80} is no name of a file: save the dataset again")
        with pa.OSFile(str(folder / name)) as file, pa.ipc.open_stream(file) as batches:
            _check_distinct(batches.schema, folder)
            for batch in batches:
                yield from batch.to_pylist()


def _check_distinct(schema: pa.Schema, path: Path) -> None:
    """Check that each column has its own name: of two, a row would keep the last. Raises ``TableError``."""
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"env.path={path}: two columns have the name {twice[:60]!r}: name each column once")


def _json_file(path: Path, key: str) -> Sequence[Any]:
    content = (
        _parsed(path.read_text(encoding="utf-8"), f"env.path={path}") if path.stat().st_size < MAX_LINE_CHARS else None
    )
    found = content.get(key) if isinstance(content, dict) else None
    if not isinstance(found, list):
        raise TableError(f"env.path={path}: it has no list {key!r}: save the dataset again")
    return found


def _checked(row: Any, place: str) -> Row:
    if not isinstance(row, Mapping):
        raise TableError(f"{place}: {type(row).__name__} is no row: write an object with a value per column")
    plain = {name: _plain(value) for name, value in row.items()}
    flaw = next((f"{str(name)[:60]!r} {flaw}" for name, value in plain.items() if (flaw := _flaw(name, value))), "")
    if flaw:
        raise TableError(f"{place}: column {flaw}")
    return plain


def _plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON has it: dates, times and decimal numbers as text, values of NumPy and PyTorch as Python's own."""
    if depth > MAX_DEPTH or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {name: _plain(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, date | time):
        text = value.isoformat()
        return value if text == "NaT" else text  # pandas' missing date
    if isinstance(value, Decimal):
        return str(value)
    return _plain_array(value, depth)


def _plain_array(value: Any, depth: int) -> Any:
    """``_plain`` of what has ``tolist``, which would make integers of dates and durations with nanoseconds."""
    if not isinstance(value, np.generic | np.ndarray) or value.dtype.kind not in "mM":
        of_array = getattr(value, "tolist", None)
        return _plain(of_array(), depth + 1) if callable(of_array) else value
    times = np.asarray(value)
    return [_plain(each, depth + 1) for each in times] if times.ndim else _date_text(times[()])


def _date_text(value: Any) -> Any:
    """A date of NumPy as text; a missing one, and a duration, as it is."""
    if value.dtype.kind == "m" or np.isnat(value):
        return value
    plain = value.item()
    if isinstance(plain, int) and (short := value.astype("datetime64[us]")) == value:
        plain = short.item()  # a Parquet file's value of the same time has this text
    return plain.isoformat() if isinstance(plain, date) else str(value)


def _flaw(name: Any, value: Any) -> str:
    """Reason why a value cannot stand in a table, with a remedy; empty if it can."""
    if not isinstance(name, str) or not name or not _is_text(name):
        return "is no name of a column: use text"
    return _unfit(value, 0)


def _unfit(value: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        return f"is nested more than {MAX_DEPTH} levels deep: write it flatter"
    if isinstance(value, str):
        return "" if _is_text(value) else "has half of a surrogate pair, which has no encoding: remove it"
    if isinstance(value, int | float):
        return "" if _is_plain_number(value) else "is NaN, infinite or too large: write a number or null"
    if isinstance(value, list | tuple | dict):
        inside = (*value, *value.values()) if isinstance(value, dict) else value
        names = isinstance(value, dict) and any(not isinstance(name, str) for name in value)
        return "has a key that is no text: use text" if names else _first_flaw(inside, depth + 1)
    return "" if value is None else f"has a {type(value).__name__}: convert it to text or a number, or leave it out"


def _first_flaw(values: Iterable[Any], depth: int) -> str:
    return next((flaw for each in values if (flaw := _unfit(each, depth))), "")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plain_number(value: float) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= 1024
    return math.isfinite(value)
