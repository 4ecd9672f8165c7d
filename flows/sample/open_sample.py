"""Opening the sample with its pages: it is unpacked, and published to MLflow and Prefect as a run of one's own is."""

import os
import tarfile
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from prefect import flow

from coevo.envs.registry import find
from coevo.flows.console import output
from coevo.flows.sample import ARCHIVE, FOLDER, RUN
from coevo.flows.servers.servers import prefect_in_use, use_prefect
from coevo.flows.upkeep.publishing import Aloud
from coevo.lineage.atomic_files import make_private
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import runs_lock, writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.status import read_record
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.publish.catchup import finish, tracker_of, unpublished
from coevo.tasks.publish.prefect import artifacts_of
from coevo.tasks.publish.reporter import Silent

NAMED = ("PREFECT_API_URL", "MLFLOW_TRACKING_URI")
"""Variables that name servers of real runs, which the sample must not use."""


def open_sample(workspace: Path) -> Workspace:
    """Open the sample's workspace, with its own servers and all revisions published.

    Raises:
        CoevoError: a server did not start, or refuses a revision.
    """
    for name in NAMED:
        os.environ.pop(name, None)
    opened = unpack(workspace)
    use_prefect(opened.root)
    if Cursor(opened.existing(RUN).published).read() < 0:
        output.line("Publishing the sample to its pages, once ...")
        with prefect_in_use():
            show.with_options(flow_run_name=RUN)(RUN, str(opened.root))
    return opened


def unpack(workspace: Path, archive: Path = ARCHIVE) -> Workspace:
    """Return the workspace ``<workspace>/sample``, unpacked from the archive if missing."""
    target = workspace / FOLDER
    make_private(workspace)
    with runs_lock(workspace):
        if not target.exists():
            with TemporaryDirectory(dir=workspace, prefix=".sample-") as part, tarfile.open(archive) as packed:
                packed.extractall(Path(part) / FOLDER, filter="data")
                (Path(part) / FOLDER).rename(target)
    return Workspace(target)


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
        # Silent: of its held-out episodes, the sample has those of the last revision alone.
        for made in unpublished(cursor, lineage, bank, Silent(), paths):
            tracker.publish(made)
            said = [each for each in judged if each.verdict.revision == made.revision]
            artifacts.submit(replace(made, judged=said))
        finish(tracker, paths, lineage.history.log(), read_record(paths))
        cursor.advance(len(lineage.history.commits()) - 1)
        cursor.close()
