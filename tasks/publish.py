"""Publishing: MLflow learns of committed revisions in the background, and of each exactly once."""

from collections.abc import Iterator
from contextlib import contextmanager

from configs.errors import CoevoError
from lineage.cursor import Cursor
from lineage.manifest import Manifest
from memory.store import Bank
from records.entry import Entry
from tasks.publisher import Publisher
from tasks.report import Reporter
from tasks.session import Session, Stores
from tasks.stage import stage
from tasks.tracking import Publication, Tracker, TrackingError


@stage("publish")
def publish(session: Session, manifest: Manifest) -> None:
    """Hand a committed revision to the publisher, and tell whoever watches."""
    submit(session.stores, manifest, session.entries)
    session.stores.reporter.revision(manifest)


def catch_up(stores: Stores) -> None:
    """Publish what an earlier process committed and could not publish any more."""
    for manifest in Cursor(stores.paths.published).unpublished(stores.lineage):
        submit(stores, manifest, entries_at(stores.bank, manifest, stores.reporter))


def submit(stores: Stores, manifest: Manifest, entries: list[Entry] | None) -> None:
    """Queue one revision."""
    stores.publisher.submit(Publication(manifest, stores.lineage.commit_hash(manifest.revision), entries))


def entries_at(bank: Bank, manifest: Manifest, reporter: Reporter) -> list[Entry] | None:
    """Active entries of a committed revision; None where its tables are gone, which keeps no run from going on."""
    try:
        return bank.at(manifest.versions).active()
    except CoevoError as error:
        reporter.warn(f"revision {manifest.revision} is published without its bank: {error}")
        return None


@contextmanager
def publishing(tracker: Tracker, cursor: Cursor, reporter: Reporter) -> Iterator[Publisher]:
    """A publisher of one run; on leaving, what is still to be published gets its last chance."""
    publisher, status = Publisher(tracker.publish, cursor.read, cursor.advance, reporter.warn), "FAILED"
    try:
        yield publisher
        status = "FINISHED"
    finally:
        left = publisher.close()
        if left is not None:
            reporter.warn(left)
        else:
            finish(tracker, status, reporter)


def finish(tracker: Tracker, status: str, reporter: Reporter) -> None:
    """Close the MLflow run where that can be done: it is no reason for the run itself to fail."""
    try:
        tracker.finish(status)
    except TrackingError as error:
        reporter.warn(f"the MLflow run stays open: {error}")
