"""``coevo bank rejects``."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at
from coevo.flows.history.history import trail
from coevo.flows.history.revision_reference import Reading, reading

COLUMNS = ("revision", "purpose", "reason", "text", "episodes")


def rejects(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, or one of its revisions.")],
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the parts of a model writer's answers that were no lesson, and why; `coevo bank log` has the verdicts.

    One row per part, up to the revision, oldest first. `text`: its first 500 characters. `episodes`: those that the
    question showed. The reasons are explained below the table.

    Example: coevo bank rejects homerules-retroagent-policy-1
    """
    from coevo.memory.writers.model.answer_lessons import REASONS

    with reading(run, workspace_at(workspace)) as opened:
        rows, name = list(_rows(opened)), opened.name
    if as_json:
        output.document(rows)
        return
    output.table([row | {"episodes": ", ".join(row["episodes"])} for row in rows], COLUMNS)
    for reason in dict.fromkeys(row["reason"] for row in rows):
        output.line(f"{reason}: {REASONS.get(reason, 'unknown')}")
    if not rows:
        output.line(
            f"No part of a writer model's answer was refused up to {name}; `coevo bank log {run} --rejected` shows "
            "candidates that were turned down."
        )


def _rows(opened: Reading) -> Iterator[dict[str, Any]]:
    from coevo.tasks.writing.artifact import FOLDER, REJECTS, read_rejects

    kept, led = set(opened.lineage.history.retained()), trail(opened.history)
    # A rollback has the writing of the restored revision: it is read once, as that revision's.
    first = {manifest.artifacts[FOLDER]: manifest for manifest in reversed(led) if FOLDER in manifest.artifacts}
    for manifest in sorted(first.values(), key=lambda manifest: manifest.revision):
        if manifest.revision in kept:
            for reject in read_rejects(opened.lineage.artifacts.files(manifest, FOLDER)[REJECTS]):
                yield {"revision": manifest.revision, **asdict(reject)}
