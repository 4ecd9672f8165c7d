"""Looking at runs: ``coevo runs`` and ``coevo log``."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from flows import history, output
from flows.reference import reading
from flows.settings import JsonOption, WorkspaceOption, workspace_at
from flows.standing import Standing, faults, standings
from lineage.lock import holder
from lineage.manifest import Manifest
from lineage.workspace import Workspace

RUN_COLUMNS = (
    "run", "recipe", "revision", "iteration", "start_success", "final_success", "evaluated", "seconds",
    "state", "process", "fault",
)  # fmt: skip
SHOWN = RUN_COLUMNS[:-2]
LOG_COLUMNS = ("revision", "iteration", "time", "success", "held_out", "bank", "what", "tags", "kept", "commit")


def runs(as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the runs, newest last.

    Success is on the first held-out panel: at the start, and where the run was last evaluated, with that revision.
    After a rollback to a revision that was not evaluated there is none until the next evaluation. A run is finished,
    unfinished, waiting (for a person), running (with the process that writes to it), or faulty: what is wrong with it
    follows below, and the other runs do not mind.

    Example: coevo runs --json
    """
    place = workspace_at(workspace)
    found = standings(place)
    rows = [_run_row(one) for one in found]
    if as_json:
        output.document(rows)
    elif rows:
        output.table([row | {"state": _state(row)} for row in rows], SHOWN)
        for fault in faults(found):
            output.line(fault)
    else:
        output.line(f"No runs in {place.root}; start one with: coevo run homerules-coevo-rl")


def log(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Name of the run, and its last revision to show.")],
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show what happened to a run, one row a revision.

    Example: coevo log homerules-coevo-rl-1
    """
    with reading(run, workspace_at(workspace)) as opened:
        process, commits = holder(opened.paths), opened.lineage.commits()
        sizes = history.bank_sizes(opened.history)
        tags, kept = opened.lineage.names(), set(opened.lineage.retained())
        rows: list[dict[str, Any]] = [
            {
                "revision": manifest.revision,
                "iteration": manifest.iteration,
                "time": history.time_of(manifest),
                "success": manifest.state["metrics"].get("success/train"),
                "held_out": history.held_out(manifest),
                "bank": size,
                "what": history.happened(manifest),
                "restored_from": manifest.state["restored_from"],
                "tags": sorted(name for name, revision in tags.items() if revision == manifest.revision),
                "kept": manifest.revision in kept,
                "commit": commit[:12],
            }
            for manifest, size, commit in zip(opened.history, sizes, commits, strict=False)
        ]
    if as_json:
        output.document(rows)
        return
    output.table([row | {"tags": ", ".join(row["tags"])} for row in rows], LOG_COLUMNS)
    if process is not None:
        output.line(f"{opened.paths.name} is running: process {process}")


def run_rows(place: Workspace) -> list[dict[str, Any]]:
    """The runs of a workspace, newest last, as rows of ``RUN_COLUMNS``."""
    return [_run_row(one) for one in standings(place)]


def _run_row(one: Standing) -> dict[str, Any]:
    recipe = None if one.config is None else one.config.recipe
    figures = _figures(one.revisions) if one.revisions else {}
    about = {"run": one.paths.name, "recipe": recipe, "state": one.state, "process": one.process, "fault": one.fault}
    return dict.fromkeys(RUN_COLUMNS) | figures | about


def _state(row: dict[str, Any]) -> str:
    return row["state"] if row["process"] is None else f"{row['state']}: process {row['process']}"


def _figures(revisions: Sequence[Manifest]) -> dict[str, object]:
    head, last = revisions[-1], history.evaluated(revisions)
    return {
        "revision": head.revision,
        "iteration": head.iteration,
        "start_success": history.held_out(revisions[0]),
        "final_success": None if last is None else history.held_out(last),
        "evaluated": None if last is None else last.revision,
        "seconds": round(history.seconds(revisions), 3),
    }


COMMANDS = (runs, log)
