"""Showing: MLflow and Prefect are told of the sample's revisions as they are of a run's own."""

from dataclasses import replace
from pathlib import Path

from prefect import flow

from envs.registry import find
from flows.publishing import Aloud
from lineage.cursor import Cursor
from lineage.lineage import Lineage
from lineage.lock import writer_lock
from lineage.workspace import Workspace
from memory.store import Bank
from tasks.artifacts import artifacts_of
from tasks.catchup import tracker_of, unpublished


@flow(name="sample", validate_parameters=False, persist_result=False)
def show(run: str, workspace: str) -> None:
    """Publish a run that was unpacked; one that was stopped meanwhile is published anew, which MLflow does not mind.

    Raises:
        TrackingError: MLflow does not take it.
    """
    place, reporter = Workspace(Path(workspace)), Aloud()
    paths = place.existing(run)
    config, cursor, bank = paths.read_config(), Cursor(paths.published), Bank(paths.bank)
    tracker, judged = tracker_of(place.root, paths, find(config.env.type).name), bank.judged()
    with (
        writer_lock(paths),
        Lineage.open(paths.lineage, place.cache) as lineage,
        artifacts_of(run, config.iterations, reporter.warn) as artifacts,
    ):
        assert artifacts is not None
        for made in unpublished(cursor, lineage, bank, reporter, paths.scratch):
            tracker.publish(made)
            said = [each for each in judged if each.verdict.revision == made.revision]
            artifacts.submit(replace(made, judged=said))
        tracker.finish()
        cursor.advance(len(lineage.commits()) - 1)
        cursor.close()
