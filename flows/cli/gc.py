"""``coevo gc``."""

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at
from coevo.lineage.revision.retention import RetentionRule, ranges
from coevo.utilities.free_space import size

if TYPE_CHECKING:
    from coevo.flows.upkeep.gc import CollectionPlan, RunPlan


def gc(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN ...]", help="Runs; by default all.")] = None,
    keep_last: Annotated[int | None, typer.Option(min=0, help="Number of latest revisions to keep.")] = None,
    keep_every: Annotated[
        int | None, typer.Option(min=1, help="Keep each revision that is a multiple of this.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Drop the revisions; by default, only list them.")] = False,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Drop old revisions to free disk space.

    Lists the revisions to drop, and those to keep with the reason; --apply drops them. Always kept: revision 0, the
    last revision, tagged revisions, and revisions that a resume reads. History stays: a dropped revision loses its
    policy, optimizer, episodes and bank. Without --keep-last and --keep-every, only files that no revision needs are
    removed.

    Example: coevo gc homerules-coevo-rl-1 --keep-last 5 --keep-every 10 --apply
    """
    from coevo.flows.upkeep.gc import collect, plan

    workspace, rule = workspace_at(directory), RetentionRule(keep_last, keep_every)
    found, freed = collect(workspace, runs or [], rule) if apply else (plan(workspace, runs or [], rule), None)
    if as_json:
        output.document(_document(found, freed))
        return
    for run in found.runs:
        _print(run, "drops" if apply else "would drop")
    if freed is None:
        output.line(f"This would free about {size(found.freed)}; add --apply to do it.")
    else:
        output.line(f"Freed {size(freed)}.")


def _document(found: "CollectionPlan", freed: int | None) -> dict[str, object]:
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


def _print(run: "RunPlan", verb: str) -> None:
    by_reason: dict[str, list[int]] = defaultdict(list)
    for revision in run.kept:
        by_reason[", ".join(run.why[revision])].append(revision)
    output.line(f"{run.paths.name} {verb} {ranges(run.dropped)} ({size(run.freed)}) and keeps")
    for why, revisions in by_reason.items():
        output.line(f"  {ranges(revisions)}: {why}")


COMMANDS = (gc,)
