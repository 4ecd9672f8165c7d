"""A Ray cluster of this machine for tests, whose nodes can be killed and frozen."""

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from coevo.utilities.cluster.joined_cluster import joined, leave
from coevo.utilities.cluster.raylets import ClusterFiles, access, remove_session, start_head, start_node

SECONDS = 110.0
"""Limit of a start on a busy machine; a start that fails is tried once more."""


class LocalCluster:
    """A head, and nodes that are added.

    ``temporary`` is the folder for temporary files of the nodes' processes.
    """

    def __init__(self, folder, cpus):
        token = folder / "secret"
        token.touch(0o600)
        token.write_text("0123456789abcdef:" + "5" * 64)
        self.files = ClusterFiles(token, folder / "session", folder)
        self.nodes = []
        # Of its own: killed nodes leave folders there, and tests of other clusters run at the same time.
        self.temporary = Path(tempfile.mkdtemp(prefix="nodes-"))
        self.head = self._started(start_head, cpus, SECONDS)
        self.address = f"127.0.0.1:{self.head.port}"

    def add(self, cpus=1):
        """Add a node; returns the handle of its guards."""
        node = self._started(start_node, len(self.nodes) + 2, self.head.port, cpus, SECONDS)
        self.nodes.append(node)
        return node

    def _started(self, start, *arguments):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", str(self.temporary))
            return start(self.files, *arguments)

    def join(self):
        """The cluster, joined by this process."""
        return joined(self.address, 60.0)

    def family(self, node):
        """Processes of a node."""
        return psutil.Process(node.process.pid).children(recursive=True)

    def raylet(self, node):
        """The process that stands for a node in the cluster."""
        (found,) = [each for each in self.family(node) if each.name() == "raylet"]
        return found

    def stop(self):
        leave()
        for each in (*self.nodes, self.head):
            each.process.stop()
        remove_session(self.files)
        shutil.rmtree(self.temporary, ignore_errors=True)


@contextmanager
def local_cluster(folder, cpus=1):
    """A cluster within the block, with the variables that give access to it."""
    before = dict(os.environ)
    cluster = None
    try:
        cluster = LocalCluster(folder, cpus)
        os.environ |= access(cluster.files.token)
        yield cluster
    finally:
        if cluster is not None:
            with suppress(psutil.NoSuchProcess):
                cluster.stop()
        os.environ.clear()
        os.environ.update(before)
