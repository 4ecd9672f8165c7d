"""Lists of runs and of revisions: ``coevo runs`` and ``coevo log``."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at, workspace_option
from coevo.flows.history import history
from coevo.flows.history.revision_reference import reading
from coevo.flows.history.run_summaries import RunSummary, run_row, run_summaries, run_summary
from coevo.flows.history.success import (
    best_before_last,
    best_revision,
    evaluations,
    held_out_success,
    last_fall,
    same_tasks,
    training_success,
)
from coevo.lineage.lock import holder
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import does_loop, read_record
from coevo.records.intervals import Interval
from coevo.tasks.cost import is_by_hand, time_by_part, time_line
from coevo.utilities.errors import CoevoError

SHOWN = ("run", "recipe", "status", "stage", "iteration", "success")
PROCESS_COLUMNS = ("node", "role", "rank", "pid", "cpu", "memory")
LOG_COLUMNS = ("rev", "iter", "time", "success", "hits", "held_out", "bank", "s", "what")


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
        output.line(
            f"No runs in {workspace.root}; start one with: coevo run homerules-coevo-rl{workspace_option(workspace)}"
        )


def log(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and the last revision to show.")],
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.png", help="Draw success by revision into this file.")
    ] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the history of a run, one row per revision. `--json` has all metrics of each, and its time by part.

    `success`: of the training episodes, `held out`: on the first held-out panel, each with half of its 95 % interval
    over tasks. `hits`: lessons found per training task; training success follows it where lessons
    decide. `s`: seconds. Below the table: the best revision, the best one before the last, the last one before success
    fell beyond noise, or that it never did, and the time by part.

    Example: coevo log homerules-coevo-rl-1
    """
    with reading(run, workspace_at(workspace)) as opened:
        process, commits = holder(opened.paths), opened.lineage.history.commits()
        sizes = history.bank_sizes(opened.history)
        tags, kept = opened.lineage.history.names(), set(opened.lineage.history.retained())
        rows = [
            _log_row(manifest, commit, size, manifest.revision in kept)
            | {"tags": sorted(name for name, revision in tags.items() if revision == manifest.revision)}
            for manifest, size, commit in zip(opened.history, sizes, commits, strict=False)
        ]
    if picture is not None:
        _draw(opened.history, picture)
    if as_json:
        output.document(rows)
        return
    output.table(list(map(_log_cells, rows)), LOG_COLUMNS)
    for text in _judgements(opened.history, opened.paths.name):
        output.line(text)
    output.line(f"Time: {time_line(opened.history)}")
    if process is not None:
        does = "is running:" if does_loop(read_record(opened.paths), process) else "is in use by"
        output.line(f"{opened.paths.name} {does} process {process}")


def _draw(manifests: Sequence[Manifest], file: Path) -> None:
    """Draw success by revision, one line per panel.

    Raises:
        CoevoError: the file is no picture by its name, or cannot be written.
    """
    from coevo.tasks.publish.mlflow.pictures import SUCCESS, curves

    if file.suffix.lower() != ".png":
        raise CoevoError(f"--picture: {file} does not end in .png: the picture is a PNG")
    lines: dict[str, dict[int, float]] = {}
    for manifest in manifests:
        for name, value in manifest.metrics.items():
            if name.startswith(SUCCESS):
                lines.setdefault(name.removeprefix(SUCCESS), {})[manifest.revision] = value
    try:
        curves(dict(sorted(lines.items()))).savefig(file)
    except OSError as error:
        raise CoevoError(f"{file} cannot be written: {error.strerror or error}: choose another file") from error


def _log_row(manifest: Manifest, commit: str, size: int | None, is_kept: bool) -> dict[str, Any]:
    return {
        "revision": manifest.revision,
        "iteration": manifest.iteration,
        "time": history.time_of(manifest),
        "success": manifest.metrics.get("agent/success/train"),
        "success_interval": _ends(training_success(manifest)),
        "task_hits": manifest.metrics.get("bank/retrieval/task_hits"),
        "held_out": history.held_out(manifest),
        "held_out_interval": _ends(held_out_success(manifest)),
        "bank": size,
        "seconds": manifest.rates.get("cost/seconds/wall"),
        "seconds_by_part": time_by_part([manifest]),
        "what": history.happened(manifest),
        "restored_from": manifest.restored_from,
        "kept": is_kept,
        "commit": commit[:12],
        "metrics": dict(sorted(manifest.metrics.items())),
    }


def _log_cells(row: dict[str, Any]) -> dict[str, object]:
    seconds = None if row["seconds"] is None else round(row["seconds"])
    return row | {
        "rev": row["revision"],
        "iter": row["iteration"],
        "time": row["time"][5:16].replace("T", " "),
        "success": _with_noise(row["success"], row["success_interval"]),
        "hits": None if row["task_hits"] is None else f"{row['task_hits']:.2f}",
        "held_out": _with_noise(row["held_out"], row["held_out_interval"]),
        "s": seconds,
        "what": _what(row),
    }


def _with_noise(success: float | None, ends: list[float] | None) -> str:
    """Success with half of its interval."""
    if success is None:
        return ""
    return f"{success:.3f}" if ends is None else f"{success:.3f} \u00b1{(ends[1] - ends[0]) / 2:.2f}"


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _judgements(history: Sequence[Manifest], run: str) -> Iterator[str]:
    """Lines about the best revision of a run, and about the last fall of its success."""
    best, fall = best_revision(history), last_fall(history)
    if best is not None:
        yield f"Best held-out success: {run}@{best.revision}, {_brief(held_out_success(best))}"
    second = best_before_last(history)
    if second is not None and best is evaluations(history)[-1]:
        yield f"Best before the last one: {run}@{second.revision}, {_brief(held_out_success(second))}"
    if fall is None and same_tasks(history):
        yield "Success never fell beyond noise from one evaluation to the next"
    if fall is not None:
        before, after = (_brief(held_out_success(each)) for each in (fall.before, fall.after))
        yield (
            f"Success fell beyond noise after {run}@{fall.before.revision}: {before} to {after} at "
            f"{run}@{fall.after.revision}"
        )


def _brief(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _what(row: dict[str, Any]) -> str:
    tags = [f"tagged {tag}" for tag in row["tags"]]
    return ", ".join([*filter(None, [row["what"]]), *tags, *([] if row["kept"] else ["dropped by gc"])])


def _below(one: RunSummary) -> Iterator[str]:
    """Lines below the table about a run."""
    name, status = one.paths.name, one.status
    if one.parent is not None:
        yield f"{name} branched from {one.parent}"
    if status.status == "running":
        yield f"{name} is running: process {one.process}"
        return
    if one.process is not None:
        yield f"{name} is in use by process {one.process}"
    if measured := _before_a_change(one.revisions):
        yield f"{name}: the last success is that of {measured}"
    if status.status != "finished":
        yield f"{name}: {status.reason}" if one.fault is not None else f"{name} {status.status}: {status.reason}"


def _before_a_change(revisions: Sequence[Manifest]) -> str:
    """The last evaluated revision, if a command has changed the bank since; else empty."""
    last = history.evaluated(revisions)
    later = [] if last is None else [each for each in history.trail(revisions) if each.revision > last.revision]
    if last is None or not any(map(is_by_hand, later)):
        return ""
    return f"revision {last.revision}, before a command changed its bank"


def _cells(one: RunSummary, row: dict[str, Any]) -> dict[str, object]:
    total = "" if one.config is None else f"/{one.config.iterations}"
    success = [f"{row[at]:.3f}" for at in ("start_success", "final_success") if row[at] is not None]
    iteration = f"{row['iteration'] or 0}{total}"
    return row | {"iteration": iteration, "success": " → ".join(success)}


def status(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Show what a run does now.

    Its stage and what it waits for, the processes that work for it here, the requests that run and wait in each of its
    engines, the busiest one first, and the workers and sessions of its pool if it is scheduled. No server is started.

    Example: coevo status homerules-coevo-rl-1 --json
    """
    from coevo.flows.engine_load import load_lines
    from coevo.flows.run_activity import activity

    workspace = workspace_at(directory)
    found = run_summary(workspace.existing(run), workspace)
    seen = activity(found, workspace)
    if as_json:
        output.document(seen)
        return
    output.line(f"{run}: {found.status}")
    if seen["waits_for"]:
        output.line(f"waits for {seen['waits_for']}")
    if seen["processes"]:
        output.table([_process_cells(each) for each in seen["processes"]], PROCESS_COLUMNS)
    for text in (*load_lines(seen["engines"]), *_of_pool(seen["pool"])):
        output.line(text)


def _process_cells(row: dict[str, Any]) -> dict[str, object]:
    memory = f"{row['memory_bytes'] / 1e6:.0f} MB"
    return row | {"rank": row["rank"] or "", "cpu": f"{row['cpu_s']:.0f} s", "memory": memory}


def _of_pool(pool: dict[str, Any] | None) -> Iterator[str]:
    """Lines about the pool of a scheduled run."""
    if pool is None:
        return
    yield f"pool {pool['name']}: {len(pool['workers'])} workers"
    busy = {each["worker"]: each for each in pool["sessions"]}
    for worker in pool["workers"]:
        session = busy.get(worker["name"])
        what = "idle" if session is None else f"{session['run']} ({session['state']})"
        yield f"  {worker['name']} ({worker['status'].lower()}): {what}"


COMMANDS = (runs, status, log)
