"""The bank on MLflow's pages: a table of each revision and of its changes, and versions of a registered model.

The registered model ``RUN-bank`` has a version wherever the bank changed: its files are the run's folder ``bank``, its
description lists what changed. ``coevo.kind`` tells it from registered packages.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from coevo.memory.bank.diff import diff_entries
from coevo.records.arrow import entries_to_table
from coevo.records.entry import Entry
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.mlflow.run_names import free_name

SAID = ("id", "strategy", "condition", "example", "scope", "zone", "level")
"""Columns of a change."""


TAG = "mlflow.loggedArtifacts"
"""Tag that lists the files that MLflow's pages show as tables."""
MAX_TAG_CHARS = 7_500
"""Most characters of its value; MLflow allows 8,000."""
KIND, BANK = "coevo.kind", "bank"
"""Tag of a registered model that holds a run's bank, and its value."""
MAX_DESCRIPTION_CHARS = 4_500
"""Most characters of a version's description; MLflow allows 5,000."""
MAX_TEXT_CHARS = 120
"""Most characters of an entry in a description."""


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


def register_bank(client: Any, run: Any, publication: Publication) -> None:
    """Register the bank of a revision as the next version of the run's bank, once.

    Args:
        client: MLflow's client.
        run: MLflow's info of the run; its name is unique in the experiment, other experiments may have it.
        publication: publication of the revision.
    """
    name = _bank_model(client, run)
    commit = {"coevo.commit": publication.commit}
    known = f"name = '{name}' and tags.`coevo.commit` = '{publication.commit}'"
    if not client.search_model_versions(known, max_results=1):
        about = description(publication)
        tags = {**commit, "coevo.revision": str(publication.revision)}
        client.create_model_version(name, f"{run.artifact_uri}/bank", run.run_id, tags, description=about)


def description(publication: Publication) -> str:
    """Size and changes of a bank as a list in Markdown, as far as they fit."""
    entries = publication.entries or ()
    lines = [
        f"Bank of revision {publication.revision}: {len(entries)} entries, in `bank/r{publication.revision}.json`."
    ]
    changes = () if publication.before is None else tuple(changes_of(publication.before, entries))
    lines += [f"- {change} `{name}` {inert_text(text)}" for change, name, text, *_ in changes]
    ends = list(accumulate(len(line) + 1 for line in lines))
    fitting = [line for line, end in zip(lines, ends, strict=True) if end < MAX_DESCRIPTION_CHARS]
    left = len(lines) - len(fitting)
    return "\n".join(
        [*fitting, *([f"- and {left} more, in `bank/changes-r{publication.revision}.json`"] if left else ())]
    )


def inert_text(text: str) -> str:
    """An entry's text in one line of Markdown, as code, so that nothing in it is a link or markup."""
    return f"`{' '.join(text.split())[:MAX_TEXT_CHARS].replace('`', chr(39))}`"


def _bank_model(client: Any, run: Any) -> str:
    """Name of the registered model of a run's bank, which is created once."""
    mine = f"tags.`coevo.mlflow_run` = '{run.run_id}'"
    found = client.search_registered_models(mine, max_results=1)
    if found:
        return str(found[0].name)
    wanted = f"{run.run_name}-bank"
    taken = {each.name for each in client.search_registered_models(f"name LIKE '{wanted}%'")}
    name = free_name(wanted, taken)
    about = f"Bank of written lessons of the run {run.run_name}: a version wherever it changed, each with its changes."
    client.create_registered_model(name, {KIND: BANK, "coevo.mlflow_run": run.run_id}, about)
    return name


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
