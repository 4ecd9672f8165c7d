"""Lists of runs and of revisions: ``coevo runs`` and ``coevo log``."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at
from coevo.flows.history import history
from coevo.flows.history.revision_reference import reading
from coevo.flows.history.run_summaries import RunSummary, run_row, run_summaries
from coevo.lineage.lock import holder

SHOWN = ("run", "recipe", "status", "stage", "iteration", "success")
LOG_COLUMNS = ("revision", "iteration", "time", "success", "held_out", "bank", "what")


def runs(as_json: JsonOption = False, directory: WorkspaceOption = None) -> None:
    """List the runs, newest last.

    `status`: running, waiting (for approval), finished, stopped (in order, before the last iteration), failed (by an
    error), crashed (its process was killed), new or faulty; `stage`: what it does, or where it ended. Processes,
    reasons and the runs that others branched from are listed below the table.

    `success`: success rate on the first held-out panel, at the start and at the last evaluation. Empty after a
    rollback to a revision without an evaluation, until the next evaluation.

    Example: coevo runs --json
    """
    workspace = workspace_at(directory)
    found = run_summaries(workspace)
    rows = [run_row(one) for one in found]
    if as_json:
        output.document(rows)
    elif rows:
        output.table([_cells(one, row) for one, row in zip(found, rows, strict=True)], SHOWN)
        for one in found:
            for text in _below(one):
                output.line(text)
    else:
        output.line(f"No runs in {workspace.root}; start one with: coevo run homerules-coevo-rl")


def log(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and the last revision to show.")],
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the history of a run, one row per revision. `--json` has all metrics of each.

    Example: coevo log homerules-coevo-rl-1
    """
    with reading(run, workspace_at(workspace)) as opened:
        process, commits = holder(opened.paths), opened.lineage.history.commits()
        sizes = history.bank_sizes(opened.history)
        tags, kept = opened.lineage.history.names(), set(opened.lineage.history.retained())
        rows: list[dict[str, Any]] = [
            {
                "revision": manifest.revision,
                "iteration": manifest.iteration,
                "time": history.time_of(manifest),
                "success": manifest.metrics.get("agent/success/train"),
                "held_out": history.held_out(manifest),
                "bank": size,
                "what": history.happened(manifest),
                "restored_from": manifest.restored_from,
                "tags": sorted(name for name, revision in tags.items() if revision == manifest.revision),
                "kept": manifest.revision in kept,
                "commit": commit[:12],
                "metrics": dict(sorted(manifest.metrics.items())),
            }
            for manifest, size, commit in zip(opened.history, sizes, commits, strict=False)
        ]
    if as_json:
        output.document(rows)
        return
    output.table([row | {"time": row["time"][:16].replace("T", " "), "what": _what(row)} for row in rows], LOG_COLUMNS)
    if process is not None:
        output.line(f"{opened.paths.name} is running: process {process}")


def _what(row: dict[str, Any]) -> str:
    tags = [f"tagged {tag}" for tag in row["tags"]]
    return ", ".join([*filter(None, [row["what"]]), *tags, *([] if row["kept"] else ["dropped by gc"])])


def _below(one: RunSummary) -> Iterator[str]:
    """Lines below the table about a run."""
    name, status = one.paths.name, one.status
    if one.parent is not None:
        yield f"{name} branched from {one.parent}"
    if one.process is not None:
        yield f"{name} is running: process {one.process}"
    elif status.status != "finished":
        yield f"{name}: {status.reason}" if one.fault is not None else f"{name} {status.status}: {status.reason}"


def _cells(one: RunSummary, row: dict[str, Any]) -> dict[str, object]:
    total = "" if one.config is None else f"/{one.config.iterations}"
    success = [f"{row[at]:.3f}" for at in ("start_success", "final_success") if row[at] is not None]
    iteration = f"{row['iteration'] or 0}{total}"
    return row | {"iteration": iteration, "success": " → ".join(success)}


COMMANDS = (runs, log)
