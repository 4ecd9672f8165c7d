"""``coevo approve``: list pending decisions, or decide one."""

from dataclasses import asdict
from getpass import getuser
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, resuming, workspace_at
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.flows.pending import Waiting
    from coevo.tasks.run.approval import Vote

COLUMNS = ("what", "kind", "since", "added", "edited", "retired", "difference")
WhatArgument = Annotated[
    str | None, typer.Argument(metavar="[RUN[@N]|MODEL/VERSION]", help="Run or version to approve or reject.")
]


def approve(
    what: WhatArgument = None,
    reject: Annotated[bool, typer.Option("--reject", help="Reject instead of approve.")] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="List what is pending, or show one run in detail; decide nothing.")
    ] = False,
    by: Annotated[str | None, typer.Option("--by", help="Name of the person; by default the login name.")] = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Approve or reject a pending admission to a bank, or a pending promotion.

    A run with approval.admission=person stops before its bank changes. A decision is a new revision; `coevo resume` and
    the next session continue from it. RUN@N applies only if that revision is the pending one. A pending decision locks
    nothing.

    Example: coevo approve homerules-coevo-rl-1@12 --reject
    """
    workspace = workspace_at(directory)
    if list_ and reject:
        raise CoevoError("--list and --reject cannot be combined: leave one of them out")
    if list_:
        _list(what, as_json, workspace)
    elif what is None:
        raise CoevoError("name a run or a version; `coevo approve --list` shows what is pending")
    else:
        from coevo.tasks.run.approval import Vote

        _decide(what, Vote(not reject, by or getuser()), trust, as_json, workspace)


def _list(what: str | None, as_json: bool, workspace: Workspace) -> None:
    from coevo.flows.pending import is_promotion, page, waiting

    if what is not None and not is_promotion(what) and not as_json:
        for text in page(what, workspace).splitlines():
            output.line(text)
        return
    found = [one for one in waiting(workspace) if what is None or one.what.partition("@")[0] == what.partition("@")[0]]
    if as_json:
        output.document([{"what": one.what, "kind": one.kind, "since": one.since, **one.says} for one in found])
    elif found:
        output.table([_cells(one) for one in found], COLUMNS)
    else:
        output.line("Nothing is pending approval.")


def _decide(what: str, vote: "Vote", trust: str | None, as_json: bool, workspace: Workspace) -> None:
    from coevo.flows.console.trust_prompt import consent_by
    from coevo.flows.pending import decide_model, decide_run, is_promotion

    if is_promotion(what):
        name = decide_model(what, vote, workspace, consent_by(trust, ask=not as_json))
        said = "is champion" if vote.approved else "is rejected; the champion stays"
        row: dict[str, Any] = {"what": name, "kind": "promotion", "approved": vote.approved, "by": vote.by}
    else:
        made = decide_run(what, vote, workspace)
        counts = {each: int(made.metrics[f"bank/{each}"]) for each in ("admitted", "retired", "size")}
        name = f"{what.partition('@')[0]}@{made.revision}"
        said = (
            f"admits {counts['admitted']} and retires {counts['retired']}: the bank has {counts['size']} entries"
            if vote.approved
            else "leaves the bank unchanged"
        )
        said_by = {"approved": vote.approved, "by": vote.by}
        row = {"what": name, "kind": "admission", **said_by, "revision": made.revision, **counts}
    if as_json:
        output.document(row)
    else:
        output.line(f"{name} {said}.")
        if not is_promotion(what):
            run = what.partition("@")[0]
            total = workspace.run(run).read_config().iterations
            output.line(f"Continue with: {resuming(run, made.iteration, total, workspace)}")


def _cells(one: "Waiting") -> dict[str, object]:
    """Table row: time to the second in two words, number of changes, and mean difference in replay."""
    counts = {each: len(one.says[each]) if each in one.says else None for each in ("added", "edited", "retired")}
    gains = [said["difference"] for said in one.says.get("replay", ())]
    difference = sum(gains) / len(gains) if gains else one.says.get("gate", {}).get("difference")
    known = {name: value for name, value in asdict(one).items() if name in COLUMNS}
    since = one.since.replace("T", " ") if one.since else None
    return {**known, "since": since, **counts, "difference": difference}


COMMANDS = (approve,)
