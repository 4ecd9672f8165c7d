"""``coevo doctor``."""

from dataclasses import asdict

from flows import output
from flows.settings import JsonOption, WorkspaceOption, workspace_at


def doctor(as_json: JsonOption = False, workspace: WorkspaceOption = None) -> int:
    """Check whether this machine is fit for a run.

    Exit code 1 where something is wrong; the remedy stands beside it.

    Example: coevo doctor
    """
    from flows.health import examine

    findings = examine(workspace_at(workspace).root)
    rows = [{"status": "ok" if finding.ok else "problem", **asdict(finding)} for finding in findings]
    if as_json:
        output.document(rows)
    else:
        output.table(rows, ("status", "check", "found", "remedy"))
    return int(not all(finding.ok for finding in findings))


COMMANDS = (doctor,)
