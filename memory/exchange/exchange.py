"""Export of entries to a file, and import from files of any origin."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from coevo.memory.exchange.entry_rows import LARGEST, ExchangeRow, json_rows, parquet_rows
from coevo.memory.validate import refuse, shortened, vet
from coevo.records.arrow import entries_to_table
from coevo.records.entry import Entry, entry_id
from coevo.records.inert import flaw
from coevo.utilities.errors import CoevoError

MOST = 100_000
"""Most entries of a file."""

LONGEST_NAME = 200
"""Most bytes of a file or folder name; the temporary file's name is a little longer."""

FORMATS: Mapping[str, Callable[[Path], Iterator[ExchangeRow]]] = {".parquet": parquet_rows, ".jsonl": json_rows}
"""Readers by file suffix."""


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
    """Write entries to a new file, Parquet or JSON Lines by its suffix, atomically; return their number.

    An edited entry gets the id of its current wording; among entries with one wording, the last edited is written.

    Raises:
        CoevoError: the file exists or cannot be written.
    """
    _kind(path)
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
    """Read and validate a file, in memory bounded by ``LARGEST`` and ``MOST``.

    Raises:
        CoevoError: the file is missing, empty or too large, or a row is invalid; names row and field.
    """
    rows = _kind(path)
    if not path.is_file():
        raise CoevoError(f"{path}: no such file: name a file that `coevo bank export` has written")
    if not 0 < path.stat().st_size <= LARGEST:
        raise CoevoError(f"{path}: has {path.stat().st_size} bytes: a file of entries has 1 to {LARGEST}")
    found: dict[str, Entry] = {}
    first: dict[str, str] = {}
    try:
        for where, row in rows(path):
            entry = vet(row, where)
            if entry.id in first:
                refuse(
                    where, "id", entry.id, f"stands in {first[entry.id].removeprefix(f'{path} ')} as well: remove one"
                )
            if len(found) == MOST:
                raise CoevoError(f"{where}: a file has at most {MOST} entries: split it")
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
        else:
            file.writelines(f"{json.dumps(asdict(entry), ensure_ascii=False)}\n".encode() for entry in entries)
        file.flush()
        os.fsync(file.fileno())


def _kind(path: Path) -> Callable[[Path], Iterator[ExchangeRow]]:
    longest = max((len(part.encode(errors="replace")) for part in path.parts), default=0)
    if longest > LONGEST_NAME or flaw(str(path)):
        raise CoevoError(f"{shortened(str(path))}: cannot name a file: at most {LONGEST_NAME} printable bytes")
    if path.suffix.lower() not in FORMATS:
        raise CoevoError(f"{path}: a bank is a file that ends in {' or '.join(FORMATS)}")
    return FORMATS[path.suffix.lower()]
