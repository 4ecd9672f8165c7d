"""``coevo branch``."""

from typing import Annotated

import typer

from flows import output
from flows.reference import reading
from flows.settings import TrustOption, WorkspaceOption, workspace_at


def branch(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; the last one where none is given.")],
    name: Annotated[str, typer.Argument(help="Name of the new run.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings to change.")
    ] = None,
    trust: TrustOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Start a run from a revision of another one.

    It begins with that revision's policy, optimizer and bank, and goes its own way from there. The other run may be
    going on meanwhile.

    Example: coevo branch homerules-coevo-rl-1@20 gentler update.optimizer.lr=1e-5 iterations=40
    """
    from flows.branch import branch as make_branch
    from flows.trust import trust_run

    place = workspace_at(workspace)
    with reading(run, place) as opened:
        if trust is not None:
            trust_run(place, opened.paths.name, opened.config, trust)
        made, config = make_branch(opened, name, overrides or [], place)
        start = opened.name
    changed = made.state["accepted_change"]
    output.line(f"{name}@{made.revision} is {start}" + (f" with {'; '.join(changed)}." if changed else "."))
    output.line(
        f"Continue it with: coevo resume {name}"
        + ("" if made.iteration < config.iterations else f" --iterations {2 * max(1, made.iteration)}")
    )


COMMANDS = (branch,)
