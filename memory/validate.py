"""Validation of what comes from files: rows before they become entries, and lists of a revision's artifacts."""

import re
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from coevo.records.arrow import ENTRIES
from coevo.records.entry import LEVELS, MAX_TEXT_CHARS, TEXTS, ZONES, Entry, entry_id
from coevo.records.inert import flaw
from coevo.utilities.errors import CoevoError

T = TypeVar("T")

MAX_SOURCES = 1000
"""Most source episodes of one entry."""

SOURCE = re.compile(r"(?:import-[0-9a-f]{12}/)?\d{1,10}/[\w-]{1,100}/\w{1,64}/\d{1,10}", re.ASCII)
"""Form of an episode id; the optional prefix marks an episode of another run."""

NUMBERS = ("created", "edited", "retired")
MAX_VALUE_CHARS = 60
"""Most characters of a value in a message."""


def listed(kind: type[T], lines: str, what: str) -> list[T]:
    """Parse the JSON list of an artifact; a pulled run may hold anything.

    Args:
        kind: dataclass of the items.
        lines: content of the file.
        what: name of the items, for error messages.

    Raises:
        CoevoError: it has another form.
    """
    try:
        return TypeAdapter(list[kind]).validate_json(lines)  # type: ignore[valid-type]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CoevoError(
            f"the revision's {what} cannot be read: {where}: {first['msg']}; roll back to another"
        ) from None


def vet(row: Mapping[str, Any], where: str) -> Entry:
    """Validate a row and return it as an entry.

    Args:
        row: values by column name, from JSON or Parquet.
        where: file and row, for error messages.

    Raises:
        CoevoError: a field is missing, of another type or not acceptable; names row, field, value and remedy.
    """
    vet_columns(list(row), where)
    for name in ("id", *TEXTS, "split"):
        _vet_text(row[name], name, where)
    _vet_sources(row["sources"], where)
    for name in NUMBERS:
        if type(row[name]) is not int or not -1 <= row[name] < 2**31:
            refuse(where, name, row[name], "is no revision: write a whole number")
    entry = Entry(**{**row, "sources": tuple(row["sources"])})
    _vet_meaning(entry, where)
    return entry


def vet_columns(names: list[str], where: str) -> None:
    """Make sure that the columns are exactly those of an entry.

    Raises:
        CoevoError: a column is missing or unknown.
    """
    wanted = ", ".join(ENTRIES.names)
    for name in names:
        if name not in ENTRIES.names:
            raise CoevoError(f"{where}: column {shortened(name)} is not one of an entry: the columns are {wanted}")
    for name in ENTRIES.names:
        if name not in names:
            raise CoevoError(f"{where}: column {name!r} is missing: the columns are {wanted}")


def refuse(where: str, field: str, value: object, problem: str) -> NoReturn:
    """Raise an error that names the place, the field, its value and the problem."""
    raise CoevoError(f"{where}: {field} = {shortened(value)}: {problem}")


def shortened(value: object) -> str:
    """A value in at most ``MAX_VALUE_CHARS`` printable ASCII characters."""
    # Cut before escaping: a value may be large.
    text = ascii(value[:MAX_VALUE_CHARS] if isinstance(value, str) else value)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[: MAX_VALUE_CHARS - 3]}..."


def _vet_text(value: object, name: str, where: str) -> None:
    if not isinstance(value, str):
        refuse(where, name, value, "is no text: write a string")
    if len(value) > MAX_TEXT_CHARS:
        refuse(where, name, value, f"has {len(value)} characters: shorten it to {MAX_TEXT_CHARS}")
    problem = flaw(value)
    if problem is not None:
        refuse(where, name, value, f"{problem}: remove it, a field is one line of plain text")


def _vet_sources(value: object, where: str) -> None:
    if not isinstance(value, list):
        refuse(where, "sources", value, "is no list: write a list of episode ids")
    if len(value) > MAX_SOURCES:
        refuse(where, "sources", value[:2], f"has {len(value)} items: keep at most {MAX_SOURCES}")
    for index, source in enumerate(value):
        if not isinstance(source, str) or not SOURCE.fullmatch(source):
            refuse(where, f"sources[{index}]", source, "is no episode id: write revision/stage/task/replica")


def _vet_meaning(entry: Entry, where: str) -> None:
    for name in ("strategy", "keywords"):
        if not getattr(entry, name).strip():
            refuse(where, name, getattr(entry, name), "is empty: an entry needs it to be found and read")
    for name, known in (("zone", ZONES), ("level", ("", *LEVELS))):
        if getattr(entry, name) not in known:
            refuse(where, name, getattr(entry, name), f"is unknown: write one of {', '.join(map(repr, known))}")
    if entry.split != "train":
        refuse(where, "split", entry.split, "is no training split: leave out what stems from an evaluation")
    expected = entry_id(entry.scope, entry.strategy)
    if entry.id != expected:
        refuse(where, "id", entry.id, f"is not the hash of scope and strategy: write {expected}")
    _vet_revisions(entry, where)


def _vet_revisions(entry: Entry, where: str) -> None:
    if entry.created < 0:
        refuse(where, "created", entry.created, "is no revision: write 0 or more")
    if entry.edited < entry.created:
        refuse(where, "edited", entry.edited, f"comes before created = {entry.created}: write {entry.created} or more")
    if entry.retired != -1:
        refuse(where, "retired", entry.retired, "is out of use: only active entries (-1) are imported, remove the row")
