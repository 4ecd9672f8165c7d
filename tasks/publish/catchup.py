"""Catching up: publication to MLflow of revisions that an earlier process committed and could not publish.

This module needs neither the loop nor a policy, so commands that commit without them need not load them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from coevo.lineage.lineage import Lineage
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import LoopRecord, RunStatus, last_record, read_record, status_of
from coevo.lineage.workspace import RunPaths
from coevo.memory.bank.bank import Bank
from coevo.models.policy.decoder import Decoder
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.tasks.cost import wall_seconds
from coevo.tasks.pending_revision import HeldOutEpisode
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import TrackingError, tracking_store
from coevo.tasks.publish.publisher import Publisher
from coevo.tasks.publish.reporter import Reporter
from coevo.tasks.publish.turn_figures import with_turn_figures
from coevo.tasks.revision_artifacts import episodes_of, held_out_of
from coevo.utilities.errors import CoevoError


@contextmanager
def open_publisher(
    paths: RunPaths, bank: Bank, lineage: Lineage, experiment: str, reporter: Reporter
) -> Iterator[Publisher]:
    """Open the publisher of a run that its loop plays; revisions committed but not published go first."""
    tracker, config = tracker_of(paths.workspace.root, paths, experiment), paths.read_config().model_dump(mode="json")

    stage = last_record(paths).stage

    def end(error: BaseException | None) -> None:
        finish(tracker, paths, lineage.history.log(), last_record(paths).ended(error))

    with publishing(tracker, Cursor(paths.published), reporter, end) as publisher:
        publisher.announce(lambda: tracker.begin(config, RunStatus("running", stage)))
        for publication in unpublished(Cursor(paths.published), lineage, bank, reporter, paths):
            publisher.submit(publication)
        yield publisher


def publish_now(paths: RunPaths, bank: Bank, lineage: Lineage, experiment: str, reporter: Reporter) -> None:
    """Publish the revisions that a run has committed and not published, in order.

    Raises:
        CoevoError: MLflow cannot be reached or refuses, or the cursor is wrong; published revisions are not repeated.
    """
    tracker, cursor = tracker_of(paths.workspace.root, paths, experiment), Cursor(paths.published)
    for publication in unpublished(cursor, lineage, bank, reporter, paths):
        tracker.publish(publication)
        cursor.advance(publication.revision)
    if cursor.is_open():
        finish(tracker, paths, lineage.history.log(), read_record(paths))
        cursor.close()


def finish(tracker: Tracker, paths: RunPaths, revisions: Sequence[Manifest], record: LoopRecord | None) -> None:
    """Give the MLflow run the status and the seconds of a run that no process writes to any more.

    Raises:
        TrackingError: MLflow cannot be reached or refuses.
    """
    status = status_of(paths.name, paths.read_config().iterations, revisions[-1] if revisions else None, record)
    tracker.finish(status, sum(map(wall_seconds, revisions)))


def tracker_of(root: Path, paths: RunPaths, experiment: str) -> Tracker:
    """Tracker of a run, identified by name and creation, since other runs may have the same name."""
    origin, decode = paths.created.read_text(encoding="utf-8").strip(), Decoder(paths.lineage / "policy")
    return Tracker(tracking_store(root), experiment, paths.name, origin, decode)


def unpublished(
    cursor: Cursor, lineage: Lineage, bank: Bank, reporter: Reporter, paths: RunPaths
) -> Iterator[Publication]:
    """Revisions that an earlier process committed and could not publish.

    Raises:
        CoevoError: the cursor is damaged, or ahead of the history.
    """
    waiting, kept, last = cursor.unpublished(lineage), set(lineage.history.retained()), cursor.read()
    # A branch may contain revisions that its parent run had dropped.
    before = entries_at(bank, lineage.history.manifest(last), reporter) if last in kept else None
    for manifest in waiting:
        held = manifest.revision in kept
        entries = entries_at(bank, manifest, reporter) if held else None
        commit = lineage.history.commit_hash(manifest.revision)
        publication = Publication(manifest, commit, entries, before)
        if held and publication.evaluated and "episodes" in manifest.artifacts:
            played = episodes_at(lineage, manifest.revision, reporter, paths.scratch)
            publication = replace(publication, episodes=with_turn_figures(paths, manifest.revision, played))
        if held and manifest.state["outcomes"] and "held_out" in manifest.artifacts:
            evaluated = held_out_at(lineage, manifest.revision, reporter, paths.scratch)
            measured = with_turn_figures(paths, manifest.revision, [each.episode for each in evaluated])
            pairs = zip(evaluated, measured, strict=True)
            publication = replace(publication, held_out=[replace(each, episode=played) for each, played in pairs])
        yield publication
        before = entries


def entries_at(bank: Bank, manifest: Manifest, reporter: Reporter) -> list[Entry] | None:
    """Active entries of a committed revision; None, with a warning, if its tables are missing."""
    try:
        return bank.at(manifest.versions, manifest.tables).active()
    except CoevoError as error:
        reporter.warn(f"revision {manifest.revision} is published without its bank: {error}")
        return None


def episodes_at(lineage: Lineage, revision: int, reporter: Reporter, scratch: Path) -> list[Episode]:
    """Training episodes of a committed revision; empty, with a warning, if their artifact is damaged."""
    try:
        return episodes_of(lineage, revision, scratch)
    except CoevoError as error:
        reporter.warn(f"revision {revision} is published without its episodes: {error}")
        return []


def held_out_at(lineage: Lineage, revision: int, reporter: Reporter, scratch: Path) -> list[HeldOutEpisode]:
    """Held-out episodes of a committed revision; empty, with a warning, if their artifact is damaged."""
    try:
        return held_out_of(lineage, revision, scratch)
    except CoevoError as error:
        reporter.warn(f"revision {revision} is published without its held-out episodes: {error}")
        return []


@contextmanager
def publishing(
    tracker: Tracker, cursor: Cursor, reporter: Reporter, end: Callable[[BaseException | None], None]
) -> Iterator[Publisher]:
    """Open a publisher of one run; on exit, remaining revisions are tried once more.

    Then ``end`` closes the MLflow run, even if an earlier process that was killed had left it open; it is given what
    ended the block.
    """
    publisher, raised = Publisher(tracker.publish, cursor.read, cursor.advance, reporter.warn), None
    try:
        yield publisher
    except BaseException as error:
        raised = error
        if isinstance(error, KeyboardInterrupt):
            publisher.leave()
        raise
    finally:
        left = publisher.close()
        if left is not None:
            reporter.warn(left)
        else:
            _close(cursor, reporter, partial(end, raised))


def _close(cursor: Cursor, reporter: Reporter, end: Callable[[], None]) -> None:
    """Close the MLflow run; a failure is a warning, since the run itself must not fail."""
    try:
        end()
        cursor.close()
    except TrackingError as error:
        reporter.warn(f"the MLflow run stays open: {error}")
