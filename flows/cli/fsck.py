"""``coevo fsck``."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at
from coevo.lineage.findings import Finding

COLUMNS = ("subject", "problem", "remedy")
RunsArgument = Annotated[list[str] | None, typer.Argument(metavar="[RUN ...]", help="Runs to check; by default all.")]


def fsck(
    runs: RunsArgument = None,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False,
    source: Annotated[
        str | None, typer.Option("--from", metavar="REMOTE", help="Remote with intact copies of damaged bank files.")
    ] = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> int:
    """Check that all stores of a run agree.

    Checks every manifest, tag, object, table version, published step and lock. Changes nothing without --repair. Of a
    run in use by a process, only the history is checked, and nothing is repaired. Exit code 1 if findings remain.

    --repair replaces a damaged file of a bank by the copy of another run of the workspace, such as a branch, or of the
    remote given by --from. A copy is used only if the tables then match what was recorded.

    Example: coevo fsck homerules-coevo-rl-1 --repair --from /mnt/backup/coevo
    """
    from coevo.flows.upkeep.workspace_check import examine
    from coevo.flows.upkeep.workspace_check import repair as mend
    from coevo.lineage.remote.banks import RemoteBanks
    from coevo.lineage.remote.remote_address import to_pull

    workspace, names = workspace_at(directory), runs or []
    with output.console(stderr=True).status("checking", spinner="line") as status:
        banks = RemoteBanks(to_pull(source), workspace) if source else None
        found = left = examine(workspace, names, status.update, banks)
        if repair and found.findings:
            mend(workspace, found, status.update, banks)
            left = examine(workspace, names, status.update, banks)
    mended = [finding for finding in found.findings if finding not in left.findings]
    if as_json:
        checked = [{"run": run.run, "revisions": run.revisions, "in_use": run.in_use} for run in left.runs]
        output.document({"runs": checked, "findings": _rows(left.findings), "mended": _rows(mended)})
    else:
        for run in left.runs:
            state = ", in use: only its history was checked" if run.in_use else ""
            found_here = "1 finding" if len(run.findings) == 1 else f"{len(run.findings)} findings"
            output.line(f"{run.run}: {run.revisions} revisions, {found_here}{state}")
        _print("Repaired:", mended, ("subject", "problem"))
        _print("Found:", left.findings, COLUMNS)
    return int(bool(left.findings))


def _rows(findings: Sequence[Finding]) -> list[dict[str, object]]:
    return [asdict(finding) for finding in findings]


def _print(title: str, findings: Sequence[Finding], columns: Sequence[str]) -> None:
    if findings:
        output.line(f"\n{title}")
        output.table(_rows(findings), columns)


COMMANDS = (fsck,)
