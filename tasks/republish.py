"""Publishing again what MLflow lacks of a run: nothing that is there is repeated."""

from collections.abc import Sequence

from envs.registry import make
from lineage.cursor import Cursor
from lineage.fsck.history import Revision
from lineage.workspace import RunPaths
from memory.store import Bank
from tasks.catchup import entries_at
from tasks.check_published import cursor_of, gaps, read_published
from tasks.report import Silent
from tasks.tracking.publication import Publication
from tasks.tracking.store import Store
from tasks.tracking.tracker import Tracker


def republish(store: Store, paths: RunPaths, revisions: Sequence[Revision], dropped: set[int]) -> None:
    """Put the cursor where it can be, and make MLflow have all that it says; its last revision gives the tags.

    The cursor says at no moment more than MLflow has: killed anywhere, what is left is published later.

    Args:
        store: where MLflow is.
        paths: of the run, whose lock is held.
        revisions: the whole history.
        dropped: revisions whose bank is not kept.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    head, said = len(revisions) - 1, cursor_of(paths)
    last = head if said is None else min(said, head)
    cursor = Cursor(paths.published)
    if last < 0:
        cursor.advance(last)
        return
    lacking = gaps(read_published(store, paths), revisions[: last + 1])
    wanted = sorted({*lacking, last})
    cursor.advance(wanted[0] - 1)
    origin = paths.created.read_text(encoding="utf-8").strip()
    tracker = Tracker(store, make(paths.read_config().env).name, paths.name, origin)
    bank = Bank(paths.bank)
    for number in wanted:
        revision = revisions[number]
        entries = None if number in dropped else entries_at(bank, revision.manifest, Silent())
        tracker.publish(Publication(revision.manifest, revision.commit, entries))
        cursor.advance(number)
    tracker.finish()
    cursor.close()
