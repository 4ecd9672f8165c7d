"""A copy of a workspace to damage: where its parts lie, for the kinds of damage that ``coevo fsck`` must name."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from coevo.lineage.lineage import Lineage
from coevo.lineage.objects.cache import Cache
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.mlflow.tracking_store import client, tracking_store

MENDED, LOST = True, False
"""Whether ``coevo fsck --repair`` brings it back."""


@dataclass(frozen=True)
class Damaged:
    """The run that is damaged, in a copy of the workspace."""

    root: Path

    @property
    def workspace(self):
        return Workspace(self.root)

    @property
    def run(self):
        return self.workspace.existing("first")

    @property
    def lineage(self):
        return self.run.lineage

    def git(self, *arguments):
        done = subprocess.run(["git", *arguments], cwd=self.lineage, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def manifest(self, revision):
        with Lineage.open(self.lineage, self.workspace.cache) as lineage:
            return lineage.history.manifest(revision)

    def stored(self, revision, artifact, file=None):
        """The cached object of an artifact's listing, or of a file in it."""
        content, cache = self.manifest(revision).artifacts[artifact], Cache(self.workspace.cache)
        return cache.path(content if file is None else cache.files(content)[file])

    def object(self, name):
        sha = self.git("rev-parse", name)
        return self.lineage / ".git" / "objects" / sha[:2] / sha[2:]

    def table(self, name, version):
        return self.run.bank / f"{name}.lance" / "_versions" / f"{2**64 - 1 - version}.manifest"


def spoil(path):
    """Other content of the same size."""
    path.chmod(0o644)
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))


def points(damaged):
    mlflow = client(tracking_store(damaged.root))
    (run,) = mlflow.search_runs([e.experiment_id for e in mlflow.search_experiments()])
    return mlflow, run.info.run_id
