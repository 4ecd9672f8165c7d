"""Tables for MLflow's pages: the bank of a revision, and its changes since the previous one."""

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from coevo.memory.bank.diff import diff_entries
from coevo.records.arrow import entries_to_table
from coevo.records.entry import Entry
from coevo.tasks.publish.mlflow.publication import Publication

SAID = ("id", "strategy", "condition", "example", "scope", "zone", "level")
"""Columns of a change."""


TAG = "mlflow.loggedArtifacts"
"""Tag that lists the files that MLflow's pages show as tables."""
MAX_TAG_CHARS = 7_500
"""Most characters of its value; MLflow allows 8,000."""


def publish_bank(client: Any, run_id: str, publication: Publication, named: str) -> str:
    """Log the tables of a bank that changed.

    Args:
        client: MLflow's client.
        run_id: id of the MLflow run.
        publication: publication of the revision.
        named: current value of the tag.

    Returns:
        New value of the tag, with these tables and as many of the earlier ones as fit.
    """
    assert publication.entries is not None
    table = entries_to_table(publication.entries)
    paths = [_log(client, run_id, f"bank/r{publication.revision}.json", table.column_names, _rows(table))]
    if publication.before is not None:
        changes = [list(row) for row in changes_of(publication.before, publication.entries)]
        path = f"bank/changes-r{publication.revision}.json"
        paths.append(_log(client, run_id, path, ["change", *SAID], changes))
    return _named([*paths, *(table["path"] for table in json.loads(named) if table["path"] not in paths)])


def changes_of(before: Sequence[Entry], after: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    """``admitted``, ``edited`` or ``retired`` and the ``SAID`` fields of every entry that changed."""
    found = diff_entries(before, after)
    for change, entries in (
        ("admitted", found.added),
        ("edited", tuple(new for _, new in found.edited)),
        ("retired", found.retired),
    ):
        for entry in entries:
            yield change, *(str(getattr(entry, name)) for name in SAID)


def _named(paths: Sequence[str]) -> str:
    said = [json.dumps({"path": path, "type": "table"}) for path in paths]
    ends = list(accumulate(len(text) + len(", ") for text in said))
    return f"[{', '.join(text for text, end in zip(said, ends, strict=True) if end < MAX_TAG_CHARS)}]"


def _rows(table: Any) -> list[list[object]]:
    return [list(row.values()) for row in table.to_pylist()]


def _log(client: Any, run_id: str, path: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    # As text, since MLflow would indent the JSON that it encodes, which is ten times as slow.
    client.log_text(run_id, json.dumps({"columns": columns, "data": rows}), path)
    return path
