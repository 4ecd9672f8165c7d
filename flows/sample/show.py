"""Publication of the sample to MLflow and Prefect, as for a run of one's own."""

from dataclasses import replace
from pathlib import Path

from prefect import flow

from coevo.envs.registry import find
from coevo.flows.upkeep.publishing import Aloud
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.status import read_record
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.publish.catchup import finish, tracker_of, unpublished
from coevo.tasks.publish.prefect import artifacts_of


@flow(name="sample", validate_parameters=False, persist_result=False)
def show(run: str, workspace: str) -> None:
    """Publish an unpacked run; after an interruption it is published again, which MLflow's pages do not show.

    Raises:
        TrackingError: MLflow refuses it.
    """
    opened, reporter = Workspace(Path(workspace)), Aloud()
    paths = opened.existing(run)
    config, cursor, bank = paths.read_config(), Cursor(paths.published), Bank(paths.bank)
    tracker, judged = tracker_of(opened.root, paths, find(config.env.type).name), bank.judged()
    with (
        writer_lock(paths),
        Lineage.open(paths.lineage, opened.cache) as lineage,
        artifacts_of(run, config.iterations, config.recipe, reporter.warn) as artifacts,
    ):
        assert artifacts is not None
        for made in unpublished(cursor, lineage, bank, reporter, paths.scratch):
            tracker.publish(made)
            said = [each for each in judged if each.verdict.revision == made.revision]
            artifacts.submit(replace(made, judged=said))
        finish(tracker, paths, lineage.history.log(), read_record(paths))
        cursor.advance(len(lineage.history.commits()) - 1)
        cursor.close()
