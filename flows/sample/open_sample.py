"""Opening the sample with its pages."""

import os
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from coevo.flows.console import output
from coevo.flows.sample import ARCHIVE, FOLDER, RUN
from coevo.flows.servers.servers import prefect_in_use, use_prefect
from coevo.lineage.atomic_files import make_private
from coevo.lineage.lock import runs_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace

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
        from coevo.flows.sample.show import show

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
