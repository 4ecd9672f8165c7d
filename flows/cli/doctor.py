"""``coevo doctor``."""

from dataclasses import asdict

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at


def doctor(as_json: JsonOption = False, workspace: WorkspaceOption = None) -> int:
    """Check that this machine can run coevo.

    Exit code 1 if a check fails; its row shows the remedy.

    Example: coevo doctor
    """
    from coevo.flows.upkeep.health import examine
    from coevo.tasks.publish.reporter import in_stage

    with in_stage("examines the machine"):
        findings = examine(workspace_at(workspace).root)
    rows = [{"status": "ok" if finding.ok else "problem", **asdict(finding)} for finding in findings]
    if as_json:
        output.document(rows)
    else:
        output.table(rows, ("status", "check", "found", "remedy"))
    return int(not all(finding.ok for finding in findings))


COMMANDS = (doctor,)
