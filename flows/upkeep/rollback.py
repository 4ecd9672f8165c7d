"""Rollback to an earlier revision, which makes a new one."""

from collections.abc import Collection

from coevo.flows.upkeep.publishing import publish_if_quick
from coevo.lineage.cursor import Cursor
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank


def restore(place: Workspace, paths: RunPaths, to: int, without: Collection[str] = ()) -> str:
    """Make a revision with all state of an earlier one, and publish it; return one line that describes it.

    Artifacts in ``without`` are left out.

    If the last revision is such a rollback already, as after a kill, no revision is made.

    Raises:
        CoevoError: the revision does not exist, was dropped, lost its optimizer or is damaged, another process writes
            to the run, or its cursor is wrong.
    """
    with writer_lock(paths), Lineage.open(paths.lineage, place.cache) as lineage:
        Cursor(paths.published).check(lineage)
        bank = Bank(paths.bank)
        before = lineage.head()
        made = lineage.rollback(to, bank, without)
        kept = ", ".join(sorted(name for name in made.artifacts if name != "episodes"))
        entries = bank.size()
        publish_if_quick(place, paths, lineage, bank)
    done = "Already rolled back" if made == before else "Rolled back"
    name = f"{paths.name}@{made.revision}"
    less = "".join(f" without its {artifact}" for artifact in without)
    return f"{done} to revision {to}{less}; recorded as {name} (iteration {made.iteration}, {kept}, {entries} entries)."
