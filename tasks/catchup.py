"""Catching up: MLflow learns of revisions that were committed and could not be published, whoever committed them.

Nothing here needs the loop or a policy, so that commands which commit without either need not load them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from configs.errors import CoevoError
from lineage.cursor import Cursor
from lineage.lineage import Lineage
from lineage.manifest import Manifest
from lineage.workspace import RunPaths
from memory.store import Bank
from records.entry import Entry
from records.episode import Episode
from tasks.episodes import episodes_of
from tasks.publisher import Publisher
from tasks.report import Reporter
from tasks.tracking.publication import Publication
from tasks.tracking.store import TrackingError, tracking_store
from tasks.tracking.tracker import Tracker


@contextmanager
def open_publisher(
    root: Path, paths: RunPaths, bank: Bank, lineage: Lineage, experiment: str, reporter: Reporter
) -> Iterator[Publisher]:
    """The publisher of a run; what was committed but not published goes first."""
    tracker = tracker_of(root, paths, experiment)
    with publishing(tracker, Cursor(paths.published), reporter) as publisher:
        for publication in unpublished(Cursor(paths.published), lineage, bank, reporter, paths.scratch):
            publisher.submit(publication)
        yield publisher


def publish_now(root: Path, paths: RunPaths, bank: Bank, lineage: Lineage, experiment: str, reporter: Reporter) -> None:
    """Publish what a run has committed and not published, one revision after another.

    Raises:
        CoevoError: MLflow cannot be reached or refuses, and what it took is not repeated; or the cursor is wrong.
    """
    tracker, cursor = tracker_of(root, paths, experiment), Cursor(paths.published)
    for publication in unpublished(cursor, lineage, bank, reporter, paths.scratch):
        tracker.publish(publication)
        cursor.advance(publication.manifest.state["revision"])
    if cursor.is_open():
        tracker.finish()
        cursor.close()


def tracker_of(root: Path, paths: RunPaths, experiment: str) -> Tracker:
    """What publishes this run, told from others of its name by when it was created."""
    return Tracker(tracking_store(root), experiment, paths.name, paths.created.read_text(encoding="utf-8").strip())


def unpublished(
    cursor: Cursor, lineage: Lineage, bank: Bank, reporter: Reporter, scratch: Path
) -> Iterator[Publication]:
    """What an earlier process committed and could not publish any more.

    Raises:
        CoevoError: the cursor is damaged, or ahead of the history.
    """
    waiting, kept, last = cursor.unpublished(lineage), set(lineage.retained()), cursor.read()
    # A branch has revisions that the run it comes from had dropped before.
    before = entries_at(bank, lineage.manifest(last), reporter) if last in kept else None
    for manifest in waiting:
        held = manifest.revision in kept
        entries = entries_at(bank, manifest, reporter) if held else None
        commit = lineage.commit_hash(manifest.revision)
        publication = Publication(manifest, commit, entries, before)
        if held and publication.evaluated and "episodes" in manifest.artifacts:
            played = episodes_at(lineage, manifest.revision, reporter, scratch)
            publication = replace(publication, episodes=played)
        yield publication
        before = entries


def entries_at(bank: Bank, manifest: Manifest, reporter: Reporter) -> list[Entry] | None:
    """Active entries of a committed revision; None where its tables are gone, which keeps no run from going on."""
    try:
        return bank.at(manifest.versions, manifest.tables).active()
    except CoevoError as error:
        reporter.warn(f"revision {manifest.revision} is published without its bank: {error}")
        return None


def episodes_at(lineage: Lineage, revision: int, reporter: Reporter, scratch: Path) -> list[Episode]:
    """Training episodes of a committed revision; none where their artifact is damaged, which keeps no run from going
    on."""
    try:
        return episodes_of(lineage, revision, scratch)
    except CoevoError as error:
        reporter.warn(f"revision {revision} is published without its episodes: {error}")
        return []


@contextmanager
def publishing(tracker: Tracker, cursor: Cursor, reporter: Reporter) -> Iterator[Publisher]:
    """A publisher of one run; on leaving, what is still to be published gets its last chance.

    The MLflow run is closed then, also where it was an earlier process that was killed before it could.
    """
    publisher, status = Publisher(tracker.publish, cursor.read, cursor.advance, reporter.warn), "FAILED"
    try:
        yield publisher
        status = "FINISHED"
    except KeyboardInterrupt:
        publisher.leave()
        raise
    finally:
        left = publisher.close()
        if left is not None:
            reporter.warn(left)
        elif cursor.is_open():
            finish(tracker, cursor, status, reporter)


def finish(tracker: Tracker, cursor: Cursor, status: str, reporter: Reporter) -> None:
    """Close the MLflow run where that can be done: it is no reason for the run itself to fail."""
    try:
        tracker.finish(status)
        cursor.close()
    except TrackingError as error:
        reporter.warn(f"the MLflow run stays open: {error}")
