"""``coevo branch``."""

from dataclasses import dataclass
from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import (
    JsonOption,
    TrustOption,
    WithoutOptimizerOption,
    WorkspaceOption,
    left_out,
    resuming,
    with_option_groups,
    workspace_at,
)
from coevo.flows.history.revision_reference import reading


@dataclass(frozen=True)
class CopyOptions:
    """Copy of a revision, as options."""

    without_optimizer: WithoutOptimizerOption = False
    trust: TrustOption = None


@with_option_groups
def branch(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; by default the last one.")],
    name: Annotated[str, typer.Argument(help="Name of the new run.")],
    copied: CopyOptions,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings to change.")
    ] = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Start a run from a revision of another one.

    The new run begins with that revision's policy, optimizer and bank. The other run does not change, and may be
    running.

    Example: coevo branch homerules-coevo-rl-1@20 gentler update.optimizer.lr=1e-5 iterations=40
    """
    from coevo.flows.console.trust_prompt import confirm_run
    from coevo.flows.upkeep.branch import branch as make_branch
    from coevo.flows.upkeep.publishing import publish

    workspace = workspace_at(directory)
    with reading(run, workspace) as opened:
        if copied.trust is not None:
            confirm_run(workspace, opened.paths.name, opened.config, copied.trust)
        made, config = make_branch(opened, name, overrides or [], workspace, left_out(copied.without_optimizer))
        start = opened.name
    publish(workspace, workspace.existing(name))
    changed = list(made.state["accepted_change"])
    output.result(
        as_json,
        {"run": name, "revision": made.revision, "parent": start, "changed": changed},
        f"Created {name}@{made.revision} from {start}" + (f": {'; '.join(changed)}" if changed else ""),
        f"Continue with: {resuming(name, made.iteration, config.iterations, workspace)}",
    )


COMMANDS = (branch,)
