"""Export of entries to a file, import from files of any origin, and the checks of their rows."""

import hashlib
import json
import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coevo.memory.exchange.parquet_footer import sizes
from coevo.memory.skill_markdown import skill_markdown
from coevo.memory.validate import refuse, shortened, vet, vet_columns
from coevo.records.arrow import ENTRIES, entries_to_table
from coevo.records.entry import MAX_TEXT_CHARS, TEXTS, Entry, entry_id
from coevo.records.inert import flaw
from coevo.utilities.errors import CoevoError

MAX_FILE_BYTES = 64 * 2**20
"""Most bytes of a file of entries, on disk and decompressed."""
MAX_LINE_BYTES = 2**20
"""Most bytes of a line of JSON."""
MAX_COLUMN_VALUES = 2_000_000
"""Most values of a Parquet column; equal items in lists take almost no disk space."""
ROWS = 1024
"""Rows of a Parquet file decoded at a time."""
ExchangeRow = tuple[str, dict[str, Any]]
"""Place of a row, for error messages, and its fields."""
MAX_ENTRIES = 100_000
"""Most entries of a file."""
MAX_NAME_BYTES = 200
"""Most bytes of a file or folder name; the temporary file's name is a little longer."""


def json_rows(path: Path) -> Iterator[ExchangeRow]:
    """Read one object per line; blank lines and byte order marks, which editors add, mean nothing.

    Raises:
        CoevoError: a line is too long, not UTF-8 or not a JSON object.
    """
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), start=1):
            where = f"{path} line {number}"
            if len(line) > MAX_LINE_BYTES:
                raise CoevoError(f"{where}: is longer than {MAX_LINE_BYTES} bytes: write one entry a line")
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
    if decompressed > MAX_FILE_BYTES:
        raise CoevoError(f"{path}: is larger than {MAX_FILE_BYTES} bytes when decompressed: split it")
    if longest > MAX_COLUMN_VALUES:
        raise CoevoError(f"{path}: a column holds more than {MAX_COLUMN_VALUES} values: split it")


def _check_lengths(batch: pa.RecordBatch, before: int, path: Path) -> None:
    for name in ("id", *TEXTS, "split"):
        column = batch[name]
        lengths = pc.binary_length(column.dictionary).take(column.indices)
        longest = pc.max(lengths).as_py() or 0
        if longest > 4 * MAX_TEXT_CHARS:
            row = before + pc.index(lengths, longest).as_py() + 1
            raise CoevoError(f"{path} row {row}: {name} has {longest} bytes: shorten it to {MAX_TEXT_CHARS} characters")
    items = batch["sources"].values
    if (pc.max(pc.binary_length(items.dictionary)).as_py() or 0) > MAX_TEXT_CHARS:
        raise CoevoError(f"{path} rows {before + 1} to {before + len(batch)}: sources hold no episode ids")


def _plain(batch: pa.RecordBatch, before: int, path: Path) -> Iterator[dict[str, Any]]:
    for index in range(len(batch)):
        for name in batch.schema.names:
            try:
                batch[name][index].as_py()
            except UnicodeDecodeError:
                refuse(f"{path} row {before + index + 1}", name, "...", "is not UTF-8: save text as UTF-8")
    yield from batch.to_pylist()


FORMATS: Mapping[str, Callable[[Path], Iterator[ExchangeRow]]] = {".parquet": parquet_rows, ".jsonl": json_rows}
"""Readers by file suffix."""
MARKDOWN = ".md"
"""Suffix of a skill file, which is written and not read back."""


@dataclass(frozen=True)
class Incoming:
    """Entries of a file.

    Attributes:
        rows: entries by place, such as ``bank.jsonl line 3``.
        digest: SHA-256 (hex) of the file.
    """

    rows: Mapping[str, Entry]
    digest: str


def write_entries(entries: Iterable[Entry], path: Path) -> int:
    """Write entries to a new file, Parquet, JSON Lines or Markdown by its suffix, atomically; return their number.

    An edited entry gets the id of its current wording; among entries with one wording, the last edited is written.

    Raises:
        CoevoError: the file exists or cannot be written.
    """
    _check_name(path, (*FORMATS, MARKDOWN))
    if path.exists():
        raise CoevoError(f"{path}: already there: name a new file")
    worded = {entry_id(entry.scope, entry.strategy): entry for entry in sorted(entries, key=lambda one: one.edited)}
    named = [replace(worded[name], id=name) for name in sorted(worded)]
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _write(named, fresh, path.suffix.lower())
        fresh.rename(path)
    except OSError as error:
        raise CoevoError(f"{path}: {error.strerror}: name a file that can be written") from None
    finally:
        fresh.unlink(missing_ok=True)
    return len(named)


def read_entries(path: Path) -> Incoming:
    """Read and validate a file, in memory bounded by ``MAX_FILE_BYTES`` and ``MAX_ENTRIES``.

    Raises:
        CoevoError: the file is missing, empty or too large, or a row is invalid; names row and field.
    """
    _check_name(path, (*FORMATS,))
    rows = FORMATS[path.suffix.lower()]
    if not path.is_file():
        raise CoevoError(f"{path}: no such file: name a file that `coevo bank export` has written")
    if not 0 < path.stat().st_size <= MAX_FILE_BYTES:
        raise CoevoError(f"{path}: has {path.stat().st_size} bytes: a file of entries has 1 to {MAX_FILE_BYTES}")
    found: dict[str, Entry] = {}
    first: dict[str, str] = {}
    try:
        for where, row in rows(path):
            entry = vet(row, where)
            if entry.id in first:
                refuse(
                    where, "id", entry.id, f"stands in {first[entry.id].removeprefix(f'{path} ')} as well: remove one"
                )
            if len(found) == MAX_ENTRIES:
                raise CoevoError(f"{where}: a file has at most {MAX_ENTRIES} entries: split it")
            found[where], first[entry.id] = entry, where
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CoevoError(f"{path}: {error.strerror}: name a file that can be read") from None
    if not found:
        raise CoevoError(f"{path}: holds no entry: name a file that `coevo bank export` has written")
    return Incoming(found, digest)


def _write(entries: list[Entry], path: Path, suffix: str) -> None:
    with path.open("wb") as file:
        if suffix == ".parquet":
            pq.write_table(entries_to_table(entries), file, compression="zstd")
        elif suffix == MARKDOWN:
            file.write(skill_markdown(entries).encode())
        else:
            file.writelines(f"{json.dumps(asdict(entry), ensure_ascii=False)}\n".encode() for entry in entries)
        file.flush()
        os.fsync(file.fileno())


def _check_name(path: Path, suffixes: Sequence[str]) -> None:
    longest = max((len(part.encode(errors="replace")) for part in path.parts), default=0)
    if longest > MAX_NAME_BYTES or flaw(str(path)):
        raise CoevoError(f"{shortened(str(path))}: cannot name a file: at most {MAX_NAME_BYTES} printable bytes")
    if path.suffix.lower() not in suffixes:
        raise CoevoError(f"{path}: a bank is a file that ends in {' or '.join(suffixes)}")
