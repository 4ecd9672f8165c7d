"""Files of a Lance table per version, read from the table's own manifests.

Lance removes old versions by age alone: with tags on some of them LanceDB's ``optimize`` refuses, and a cleanup that
respects tags needs another package with its own copy of Lance. Therefore obsolete files are determined here, from four
fields of the manifest (Lance's ``table.proto``), and ``coevo.memory.bank.table_retention`` proves them before any
removal.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from shutil import copyfile

from coevo.memory.bank.bank_address import BankPath
from coevo.utilities.errors import CoevoError

MAGIC = b"LANC"
FRAGMENTS, VERSION, TRANSACTION, BASES = 2, 3, 12, 18
FRAGMENT_ID, DATA_FILES, DELETION_FILE, FRAGMENT_ROWS = 1, 2, 3, 4
DATA_PATH = 1
DELETION_READ, DELETION_ID = 2, 3
MAX_MANIFEST_BYTES = 1 << 26
"""Largest manifest in bytes; that of a large bank has some kB."""
MAX_SHIFT_BITS = 63
"""Most bits by which a varint of a protocol buffer is shifted: it has ten bytes at most."""
MAX_VERSION = 2**64 - 1
"""Largest version; a manifest's name is this minus its version, so that the newest is listed first."""
NOTHING: Mapping[str, Path] = {}
TRANSACTIONS = "_transactions/"
"""Folder of files that reading a version does not need."""
FIXED = {1: 8, 5: 4}
"""Bytes of the wire types of fixed length."""

OUTSIDE = "it names files outside of its table"
STEM = re.compile(r"(data|_deletions|_transactions)/\w[\w.-]*")

ProtobufValue = int | bytes


@dataclass(frozen=True)
class Fragment:
    """Rows of one write, as a manifest has them.

    Attributes:
        number: number of the fragment in its table.
        rows: its rows, deleted ones included.
        stems: its files, as in ``Version``.
    """

    number: int
    rows: int
    stems: tuple[str, ...]


@dataclass(frozen=True)
class Version:
    """One version of a table.

    Attributes:
        number: version number.
        manifest: file that describes the version.
        stems: files of the version, relative to the table, deletion files without their suffix.
        fragments: rows of each fragment, deleted ones included, by its number.
    """

    number: int
    manifest: Path
    stems: frozenset[str]
    fragments: Mapping[int, int]

    @property
    def read(self) -> list[str]:
        """The ``stems`` that reading the version needs, sorted."""
        return sorted(stem for stem in self.stems if not stem.startswith(TRANSACTIONS))


def manifest_name(version: int) -> str:
    """Manifest of a version, relative to its table."""
    return f"_versions/{MAX_VERSION - version}.manifest"


def manifests(table: BankPath) -> list[str]:
    """Manifests of a table, relative to it, newest first."""
    folder = table / "_versions"
    names = (path.name for path in folder.glob("*")) if isinstance(folder, Path) else folder.names()
    return sorted(f"_versions/{name}" for name in names if name.endswith(".manifest"))


def versions(table: Path) -> list[Version]:
    """Existing versions of a table, by number.

    Raises:
        CoevoError: a manifest has an unknown format.
    """
    fragment = lru_cache(maxsize=None)(_fragment)  # most of them stand in the version before, too, byte for byte
    return sorted((_version(table / name, fragment) for name in manifests(table)), key=lambda version: version.number)


def check_enclosed(bank: Path) -> None:
    """Make sure that no table of a bank reads files outside of it; call this before Lance opens a foreign bank.

    Raises:
        CoevoError: a manifest names such a file, or has an unknown format.
    """
    for table in sorted(bank.glob("*.lance")):
        versions(table)


def files(table: Path) -> list[str]:
    """Files of a table that belong to some versions only, relative to it."""
    found = list[str]()
    for folder in (table / name for name in ("data", "_deletions", "_transactions")):
        if folder.is_dir():
            with os.scandir(folder) as entries:
                found += [f"{folder.name}/{entry.name}" for entry in entries if entry.is_file()]
    return sorted(found)


def belonging(names: Iterable[str], kept: Iterable[Version]) -> list[str]:
    """Files of a list, relative to the table, that belong to one of the versions, in its order."""
    stems = frozenset[str]().union(*(version.stems for version in kept))
    return [name for name in names if name in stems or _deletion_stem(name) in stems]


def mirror(table: Path, into: Path, names: Iterable[str], instead: Mapping[str, Path] = NOTHING) -> None:
    """Make a table from files of another one: manifests are copied, other files linked.

    Args:
        table: source table; anything but regular files is skipped.
        into: directory of the new table.
        names: files, relative to the table.
        instead: replacements of files, by their name.
    """
    for name in {*names, *instead}:
        source, target = instead.get(name, table / name).absolute(), into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_file():
            copyfile(source, target) if name.startswith("_versions/") else target.symlink_to(source)


def read_version(path: Path) -> Version:
    """Read the version that a manifest describes.

    Raises:
        CoevoError: the manifest has an unknown format.
    """
    return _version(path, _fragment)


def _version(path: Path, fragment: Callable[[bytes], Fragment]) -> Version:
    try:
        # Reading a pipe would block.
        content = path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_MANIFEST_BYTES else b""
        start = int.from_bytes(content[-16:-8], "little")
        size = int.from_bytes(content[start : start + 4], "little")
        if content[-4:] != MAGIC or start + 4 + size > len(content):
            raise ValueError("it does not end as a manifest does")
        fields = list(_fields(content[start + 4 : start + 4 + size]))
        (number,) = (value for field, value in fields if field == VERSION)
        if any(field == BASES for field, _ in fields):
            raise ValueError(OUTSIDE)
        fragments = [fragment(_bytes(value)) for field, value in fields if field == FRAGMENTS]
        stems = {_inside(f"{TRANSACTIONS}{_bytes(value).decode()}") for field, value in fields if field == TRANSACTION}
        stems.update(*(each.stems for each in fragments))
        return Version(_number(number), path, frozenset(stems), {each.number: each.rows for each in fragments})
    except (ValueError, IndexError, KeyError) as error:
        raise CoevoError(
            f"{path}: not a manifest of Lance as it is known here ({error}): nothing was removed"
        ) from None


def _fragment(content: bytes) -> Fragment:
    fields = list(_fields(content))
    last, stems = dict(fields), list[str]()
    number = _number(last.get(FRAGMENT_ID, 0))
    for part, inner in fields:
        if part == DATA_FILES:
            stems.append(f"data/{_bytes(dict(_fields(_bytes(inner)))[DATA_PATH]).decode()}")
        if part == DELETION_FILE:
            deletion = dict(_fields(_bytes(inner)))
            read, name = (_number(deletion.get(key, 0)) for key in (DELETION_READ, DELETION_ID))
            stems.append(f"_deletions/{number}-{read}-{name}")
    return Fragment(number, _number(last.get(FRAGMENT_ROWS, 0)), tuple(map(_inside, stems)))


def _inside(stem: str) -> str:
    if not STEM.fullmatch(stem):
        raise ValueError(OUTSIDE)
    return stem


def _deletion_stem(name: str) -> str | None:
    return name.rpartition(".")[0] if name.startswith("_deletions/") else None


def _fields(message: bytes) -> Iterator[tuple[int, ProtobufValue]]:
    """Field numbers and values of a protocol buffer."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
        else:
            size, at = _varint(message, at) if kind == 2 else (FIXED[kind], at)
            if at + size > len(message):
                raise ValueError("a field is cut off")
            yield key >> 3, message[at : at + size]
            at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while message[at] & 128:
        value |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if shift > MAX_SHIFT_BITS:
            raise ValueError("a number has no end")
    return value | message[at] << shift, at + 1


def _number(value: ProtobufValue) -> int:
    if isinstance(value, bytes):
        raise ValueError("a number is missing")
    return value


def _bytes(value: ProtobufValue) -> bytes:
    if isinstance(value, int):
        raise ValueError("a text is missing")
    return value
