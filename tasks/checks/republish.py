"""Repeated publication of the revisions that MLflow lacks; nothing is duplicated."""

from collections.abc import Sequence

from coevo.envs.registry import make
from coevo.lineage.cursor import Cursor
from coevo.lineage.fsck.history_check import Revision
from coevo.lineage.status import read_record
from coevo.lineage.workspace import RunPaths
from coevo.memory.bank.bank import Bank
from coevo.tasks.checks.published import cursor_of, gaps, read_published
from coevo.tasks.publish.catchup import entries_at, finish
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore
from coevo.tasks.publish.reporter import Silent


def republish(store: TrackingStore, paths: RunPaths, revisions: Sequence[Revision], dropped: set[int]) -> None:
    """Correct the cursor, and publish all revisions up to it that MLflow lacks; the last one sets the tags.

    The cursor is never ahead of MLflow: after a kill at any point, the rest is published later.

    Args:
        store: MLflow's store.
        paths: paths of the run, whose lock the caller holds.
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
    tracker.rename()
    finish(tracker, paths, [revision.manifest for revision in revisions], read_record(paths))
    cursor.close()
