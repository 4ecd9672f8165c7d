"""Publishing: MLflow learns of committed revisions in the background, and of each exactly once."""

from collections.abc import Iterator
from contextlib import contextmanager

from lineage.cursor import Cursor
from lineage.manifest import Manifest
from memory.store import Bank
from records.entry import Entry
from tasks.publisher import Publisher
from tasks.report import Reporter
from tasks.session import Session, Stores
from tasks.stage import stage
from tasks.tracking import Publication, Tracker


@stage("publish")
def publish(session: Session, manifest: Manifest) -> None:
    """Hand a committed revision to the publisher, and tell whoever watches."""
    submit(session.stores, manifest, session.entries)
    session.stores.reporter.revision(manifest)


def catch_up(stores: Stores) -> None:
    """Publish what an earlier process committed and could not publish any more."""
    for manifest in Cursor(stores.paths.published).unpublished(stores.lineage):
        submit(stores, manifest, entries_at(stores.bank, manifest))


def submit(stores: Stores, manifest: Manifest, entries: list[Entry]) -> None:
    """Queue one revision."""
    stores.publisher.submit(Publication(manifest, stores.lineage.commit_hash(manifest.revision), entries))


def entries_at(bank: Bank, manifest: Manifest) -> list[Entry]:
    """Active entries of a committed revision."""
    return bank.at(manifest.versions).active()


@contextmanager
def publishing(tracker: Tracker, cursor: Cursor, reporter: Reporter) -> Iterator[Publisher]:
    """A publisher of one run; on leaving, what is still to be published gets its last chance."""
    publisher, status = Publisher(tracker.publish, cursor.read, cursor.advance), "FAILED"
    try:
        yield publisher
        status = "FINISHED"
    finally:
        left = publisher.close()
        if left is not None:
            reporter.warn(left)
        else:
            tracker.finish(status)
