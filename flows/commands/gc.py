"""``coevo gc``."""

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from flows import output
from flows.settings import JsonOption, WorkspaceOption, workspace_at
from lineage.retention import Rule, ranges

if TYPE_CHECKING:
    from flows.collection import Plan, RunPlan


def gc(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN ...]", help="Runs; all where none is named.")
    ] = None,
    keep_last: Annotated[int | None, typer.Option(min=0, help="Keep this many revisions at the end.")] = None,
    keep_every: Annotated[int | None, typer.Option(min=1, help="Keep every revision that is a multiple of it.")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; otherwise it is only shown.")] = False,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Drop old revisions to free disk space.

    Shows what would be kept and why, and what dropped; --apply does it. Kept in any case: revision 0, the last one,
    tagged ones, and what a resume reads. History stays; of a dropped revision policy, optimizer, episodes and bank go.
    Without --keep-last and --keep-every only files that no revision needs are removed.

    Example: coevo gc homerules-coevo-rl-1 --keep-last 5 --keep-every 10 --apply
    """
    from flows.collection import collect, plan

    place, rule = workspace_at(workspace), Rule(keep_last, keep_every)
    found, freed = collect(place, runs or [], rule) if apply else (plan(place, runs or [], rule), None)
    if as_json:
        output.document(_document(found, freed))
        return
    for run in found.runs:
        _tell(run, "drops" if apply else "would drop")
    if freed is None:
        output.line(f"It would free about {size(found.freed)}; to do it, add --apply.")
    else:
        output.line(f"Freed {size(freed)}.")


def _document(found: "Plan", freed: int | None) -> dict[str, object]:
    runs = [
        {
            "run": run.paths.name,
            "kept": [{"revision": revision, "why": list(run.why[revision])} for revision in run.kept],
            "dropped": run.dropped,
            "bytes": run.freed,
        }
        for run in found.runs
    ]
    return {"runs": runs, "bytes": found.freed, "freed": freed}


def _tell(run: "RunPlan", verb: str) -> None:
    by_reason: dict[str, list[int]] = defaultdict(list)
    for revision in run.kept:
        by_reason[", ".join(run.why[revision])].append(revision)
    output.line(f"{run.paths.name} {verb} {ranges(run.dropped)} ({size(run.freed)}) and keeps")
    for why, revisions in by_reason.items():
        output.line(f"  {ranges(revisions)}: {why}")


def size(count: float) -> str:
    """Bytes as people read them."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


COMMANDS = (gc,)
