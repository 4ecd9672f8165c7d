"""Rollback to an earlier revision, which makes a new one."""

from collections.abc import Callable, Collection

from coevo.flows.upkeep.publishing import publish_if_quick
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank


def restore(
    workspace: Workspace, paths: RunPaths, to: int, say: Callable[[str], object], without: Collection[str] = ()
) -> None:
    """Make a revision with all state of an earlier one, ``say`` one line that describes it, and publish it.

    Artifacts in ``without`` are left out.

    If the last revision is such a rollback already, as after a kill, no revision is made.

    Raises:
        CoevoError: the revision does not exist, was dropped, lost its optimizer or is damaged, another process writes
            to the run, or its cursor is wrong.
    """
    with writer_lock(paths), Lineage.open(paths.lineage, workspace.cache) as lineage:
        Cursor(paths.published).check(lineage)
        bank = Bank(paths.bank)
        before = lineage.history.head()
        made = lineage.rollback(to, bank, without)
        kept = ", ".join(sorted(name for name in made.artifacts if name != "episodes"))
        done = "Already rolled back" if made == before else "Rolled back"
        less = "".join(f" without its {artifact}" for artifact in without)
        holds = f"iteration {made.iteration}, {kept}, {bank.size()} entries"
        say(f"{done} to revision {to}{less}; recorded as {paths.name}@{made.revision} ({holds}).")
        publish_if_quick(workspace, paths, lineage, bank)
