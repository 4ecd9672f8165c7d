"""Unpacking: the sample becomes a workspace of its own, whole or not at all."""

import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from flows.sample import ARCHIVE, FOLDER
from lineage.files import make_private
from lineage.lock import runs_lock
from lineage.workspace import Workspace


def unpack(workspace: Path, archive: Path = ARCHIVE) -> Workspace:
    """The workspace ``<workspace>/sample``, made of the archive where it is not there."""
    target = workspace / FOLDER
    make_private(workspace)
    with runs_lock(workspace):
        if not target.exists():
            with TemporaryDirectory(dir=workspace, prefix=".sample-") as part, tarfile.open(archive) as packed:
                packed.extractall(Path(part) / FOLDER, filter="data")
                (Path(part) / FOLDER).rename(target)
    return Workspace(target)
