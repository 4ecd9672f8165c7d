"""``coevo rollback``."""

from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import (
    JsonOption,
    WithoutOptimizerOption,
    WorkspaceOption,
    left_out,
    resuming,
    workspace_at,
)
from coevo.flows.history.revision_reference import reading


def rollback(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    to: Annotated[str, typer.Option(metavar="N", help="Revision to restore, or its tag.")],
    without_optimizer: WithoutOptimizerOption = False,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Restore an earlier revision.

    Its policy, optimizer and bank become a new revision. History stays, so the same command also undoes a rollback.

    Example: coevo rollback homerules-coevo-rl-1 --to 3
    """
    workspace = workspace_at(directory)
    paths = workspace.existing(run)
    with reading(f"{run}@{to}", workspace) as there:
        revision, iteration = there.manifest.revision, there.manifest.iteration
        head = there.lineage.history.head()  # config.json may be what a rollback has to do without
        total = iteration if head is None else int(head.state["config"]["iterations"])
    from coevo.flows.upkeep.branch import restore

    said = list[str]()
    made = restore(workspace, paths, revision, said.append, left_out(without_optimizer))
    document = {"run": run, "revision": made.revision, "restored_from": made.restored_from}
    output.result(as_json, document, *said, f"Continue with: {resuming(run, iteration, total, workspace)}")


COMMANDS = (rollback,)
