"""Which files of a Lance table its versions consist of, read from the table's own manifests.

Lance removes old versions by age alone: with tags on some of them LanceDB's ``optimize`` refuses, and what would leave
tagged ones out is another package with another copy of Lance. So what may go is worked out here, from four fields of
the manifest (Lance's ``table.proto``), and ``memory.retention`` proves it before anything is removed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from configs.errors import CoevoError

MAGIC = b"LANC"
FRAGMENTS, VERSION, TRANSACTION = 2, 3, 12
FRAGMENT_ID, DATA_FILES, DELETION_FILE = 1, 2, 3
DATA_PATH = 1
DELETION_READ, DELETION_ID = 2, 3
FIXED = {1: 8, 5: 4}
"""Bytes of the wire types that are neither a number nor of given length."""

Value = int | bytes


@dataclass(frozen=True)
class Version:
    """One version of a table.

    Attributes:
        number: its number.
        manifest: file that describes it.
        stems: the files it consists of, relative to the table, deletion files without their suffix.
    """

    number: int
    manifest: Path
    stems: frozenset[str]

    def needs(self, name: str) -> bool:
        """Whether a file, relative to the table, belongs to this version."""
        return name in self.stems or (name.startswith("_deletions/") and name.rpartition(".")[0] in self.stems)


def versions(table: Path) -> list[Version]:
    """Every version of a table that is there, by number.

    Raises:
        CoevoError: a manifest is not one of the format that is known here.
    """
    found = [_read(path) for path in (table / "_versions").glob("*.manifest")]
    return sorted(found, key=lambda version: version.number)


def files(table: Path) -> list[str]:
    """Files of a table that only some versions need, relative to it."""
    folders = (table / name for name in ("data", "_deletions", "_transactions"))
    return sorted(path.relative_to(table).as_posix() for folder in folders for path in folder.glob("*"))


def _read(path: Path) -> Version:
    content = path.read_bytes()
    try:
        start = int.from_bytes(content[-16:-8], "little")
        size = int.from_bytes(content[start : start + 4], "little")
        if content[-4:] != MAGIC or start + 4 + size > len(content):
            raise ValueError("it does not end as a manifest does")
        fields = list(_fields(content[start + 4 : start + 4 + size]))
        (number,) = (value for field, value in fields if field == VERSION)
        return Version(_number(number), path, frozenset(_stems(fields)))
    except (ValueError, IndexError, KeyError) as error:
        raise CoevoError(
            f"{path}: not a manifest of Lance as it is known here ({error}): nothing was removed"
        ) from None


def _stems(fields: list[tuple[int, Value]]) -> Iterator[str]:
    for field, value in fields:
        if field == TRANSACTION:
            yield f"_transactions/{_bytes(value).decode()}"
        if field == FRAGMENTS:
            fragment = list(_fields(_bytes(value)))
            number = _number(dict(fragment).get(FRAGMENT_ID, 0))
            for part, inner in fragment:
                if part == DATA_FILES:
                    yield f"data/{_bytes(dict(_fields(_bytes(inner)))[DATA_PATH]).decode()}"
                if part == DELETION_FILE:
                    deletion = dict(_fields(_bytes(inner)))
                    read, name = (_number(deletion.get(key, 0)) for key in (DELETION_READ, DELETION_ID))
                    yield f"_deletions/{number}-{read}-{name}"


def _fields(message: bytes) -> Iterator[tuple[int, Value]]:
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
            yield key >> 3, message[at : at + size]
            at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while message[at] & 128:
        value |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | message[at] << shift, at + 1


def _number(value: Value) -> int:
    if isinstance(value, bytes):
        raise ValueError("a number is missing")
    return value


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise ValueError("a text is missing")
    return value
