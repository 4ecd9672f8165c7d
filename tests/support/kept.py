"""Contents of a revision, read back from the stores: equal revisions give equal values."""

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank

COUNTERS = ("iteration", "fired")


def whole(root, run, revision):
    """Bytes of every artifact, hash of every table, and the counters of one revision."""
    workspace = Workspace(Path(root))
    paths = workspace.existing(run)
    with Lineage.open(paths.lineage, workspace.cache) as lineage, TemporaryDirectory() as scratch:
        manifest = lineage.history.manifest(revision)
        artifacts = {
            name: contents(lineage.artifacts.materialise(revision, name, Path(scratch) / name))
            for name in manifest.artifacts
        }
    tables = Bank(paths.bank).at(manifest.versions).hashes()
    assert tables == manifest.tables
    return artifacts, tables, {name: manifest.state[name] for name in COUNTERS}


def contents(directory):
    """Hash of each file by its path."""
    files = sorted(path for path in Path(directory).rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def history(root, run):
    """Manifests of a run's revisions, oldest first."""
    workspace = Workspace(Path(root))
    with Lineage.open(workspace.existing(run).lineage, workspace.cache) as lineage:
        return lineage.history.log()


def retained(root, run):
    workspace = Workspace(Path(root))
    with Lineage.open(workspace.existing(run).lineage, workspace.cache) as lineage:
        return lineage.history.retained()


def recovered(root, run):
    """Recover the run as its next session would; its last revision."""
    workspace = Workspace(Path(root))
    paths = workspace.existing(run)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        lineage.recover(Bank(paths.bank))
        return lineage.history.head()
