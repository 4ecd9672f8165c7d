"""Rows of a Parquet or JSON Lines file of entries, in bounded memory whatever the file contains."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coevo.memory.exchange.parquet_footer import sizes
from coevo.memory.validate import refuse, shortened, vet_columns
from coevo.records.arrow import ENTRIES
from coevo.records.entry import LONGEST, TEXTS
from coevo.utilities.errors import CoevoError

LARGEST = 64 * 2**20
"""Most bytes of a file of entries, on disk and decompressed."""

LONGEST_LINE = 2**20
"""Most bytes of a line of JSON."""

MOST_VALUES = 2_000_000
"""Most values of a Parquet column; equal items in lists take almost no disk space."""

ROWS = 1024
"""Rows of a Parquet file decoded at a time."""

ExchangeRow = tuple[str, dict[str, Any]]
"""Place of a row, for error messages, and its fields."""


def json_rows(path: Path) -> Iterator[ExchangeRow]:
    """Read one object per line; blank lines and byte order marks, which editors add, mean nothing.

    Raises:
        CoevoError: a line is too long, not UTF-8 or not a JSON object.
    """
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
            where = f"{path} line {number}"
            if len(line) > LONGEST_LINE:
                raise CoevoError(f"{where}: is longer than {LONGEST_LINE} bytes: write one entry a line")
            text = line.removeprefix(BOM_UTF8)
            if text.strip():
                yield where, _object(text, where)


def parquet_rows(path: Path) -> Iterator[ExchangeRow]:
    """Read the rows of a Parquet file with the schema of entries.

    Raises:
        CoevoError: the file is not Parquet, has another schema, or is too large.
    """
    texts = [name for name, kind in zip(ENTRIES.names, ENTRIES.types, strict=True) if pa.types.is_string(kind)]
    try:
        _check_layout(pq.ParquetFile(path), path)
        number = 0
        # Keep dictionaries encoded: a long text shared by a million rows is decoded once, then refused.
        file = pq.ParquetFile(path, read_dictionary=[*texts, "sources.list.element"])
        for batch in _batches(file):
            _check_lengths(batch, number, path)
            for row in _plain(batch, number, path):
                number += 1
                yield f"{path} row {number}", row
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:  # KeyError: a column with another path
        raise CoevoError(f"{path}: not readable as Parquet: {shortened(str(error))}: export it again") from None


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    # Per row group: a batch that spans two has chunked dictionaries, which pyarrow does not put into lists.
    for group in range(file.num_row_groups):
        yield from file.iter_batches(batch_size=ROWS, row_groups=[group])


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise CoevoError(f"{where}: byte {error.start + 1} is not UTF-8: save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise CoevoError(f"{where}: not readable as JSON: {shortened(str(error))}: write one object a line") from None
    if not isinstance(found, dict):
        raise CoevoError(f"{where}: {shortened(found)} is no object: write one object a line")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{max(names, key=names.count)!r} occurs twice")
    return fields


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")


def _check_layout(file: pq.ParquetFile, path: Path) -> None:
    schema = file.schema_arrow
    vet_columns(schema.names, str(path))
    for wanted in ENTRIES:
        found = schema.field(wanted.name).type if schema.names.count(wanted.name) == 1 else "there twice"
        if found != wanted.type:
            raise CoevoError(f"{path}: column {wanted.name!r} is {found}: write it as {wanted.type}")
    decompressed, longest = sizes(path)
    if decompressed > LARGEST:
        raise CoevoError(f"{path}: is larger than {LARGEST} bytes when decompressed: split it")
    if longest > MOST_VALUES:
        raise CoevoError(f"{path}: a column holds more than {MOST_VALUES} values: split it")


def _check_lengths(batch: pa.RecordBatch, before: int, path: Path) -> None:
    for name in ("id", *TEXTS, "split"):
        column = batch[name]
        lengths = pc.binary_length(column.dictionary).take(column.indices)
        longest = pc.max(lengths).as_py() or 0
        if longest > 4 * LONGEST:
            row = before + pc.index(lengths, longest).as_py() + 1
            raise CoevoError(f"{path} row {row}: {name} has {longest} bytes: shorten it to {LONGEST} characters")
    items = batch["sources"].values
    if (pc.max(pc.binary_length(items.dictionary)).as_py() or 0) > LONGEST:
        raise CoevoError(f"{path} rows {before + 1} to {before + len(batch)}: sources hold no episode ids")


def _plain(batch: pa.RecordBatch, before: int, path: Path) -> Iterator[dict[str, Any]]:
    for index in range(len(batch)):
        for name in batch.schema.names:
            try:
                batch[name][index].as_py()
            except UnicodeDecodeError:
                refuse(f"{path} row {before + index + 1}", name, "...", "is not UTF-8: save text as UTF-8")
    yield from batch.to_pylist()
