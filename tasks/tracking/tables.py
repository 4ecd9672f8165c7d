"""The bank of a revision, and what became of it since the one before, as tables that MLflow's pages show."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from memory.diff import diff
from records.arrow import entries_to_table
from records.entry import Entry
from tasks.tracking.publication import Publication

SAID = ("id", "strategy", "condition", "example", "scope", "zone", "level")
"""Columns of a change."""


def publish_bank(client: Any, run_id: str, publication: Publication) -> str:
    """Log the tables of a bank that changed; returns the value of the tag that names them."""
    assert publication.entries is not None
    table = entries_to_table(publication.entries)
    paths = [_log(client, run_id, f"bank/r{publication.revision}.json", table.column_names, _rows(table))]
    if publication.before is not None:
        changes = [list(row) for row in changes_of(publication.before, publication.entries)]
        path = f"bank/changes-r{publication.revision}.json"
        paths.append(_log(client, run_id, path, ["change", *SAID], changes))
    return json.dumps([{"path": path, "type": "table"} for path in paths])


def changes_of(before: Sequence[Entry], after: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    """``admitted``, ``edited`` or ``retired`` and the ``SAID`` fields of every entry that is not as it was."""
    found = diff(entries_to_table(before), entries_to_table(after))
    for change, entries in (
        ("admitted", found.added),
        ("edited", tuple(new for _, new in found.edited)),
        ("retired", found.retired),
    ):
        for entry in entries:
            yield change, *(str(getattr(entry, name)) for name in SAID)


def _rows(table: Any) -> list[list[object]]:
    return [list(row.values()) for row in table.to_pylist()]


def _log(client: Any, run_id: str, path: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    # As text, since MLflow would indent what it encodes itself: ten times as slow.
    client.log_text(run_id, json.dumps({"columns": columns, "data": rows}), path)
    return path
