"""Going back to an earlier revision, which makes a new one."""

from flows.publishing import publish_if_quick
from lineage.cursor import Cursor
from lineage.lineage import Lineage
from lineage.lock import writer_lock
from lineage.workspace import RunPaths, Workspace
from memory.store import Bank


def restore(place: Workspace, paths: RunPaths, to: int) -> str:
    """Make a revision with all state of an earlier one, and publish it; says in one line what it holds.

    Where the last revision is such a one already, as after a kill, none is made.

    Raises:
        CoevoError: there is no such revision, it was dropped or is damaged, another process writes to the run, or its
            cursor is wrong.
    """
    with writer_lock(paths), Lineage.open(paths.lineage, place.cache) as lineage:
        Cursor(paths.published).check(lineage)
        bank = Bank(paths.bank)
        before = lineage.head()
        made = lineage.rollback(to, bank)
        kept = ", ".join(sorted(name for name in made.artifacts if name != "episodes"))
        entries = bank.size()
        publish_if_quick(place, paths, lineage, bank)
    name = f"{paths.name}@{made.revision}"
    again = f"is revision {to} again{' already' if made == before else ''}"
    return f"{name} {again}: iteration {made.iteration}, {kept}, {entries} entries."
