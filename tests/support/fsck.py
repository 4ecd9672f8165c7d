"""The oracle of the tests that kill: what ``coevo fsck`` says of a workspace."""

import hashlib
from pathlib import Path

from coevo.flows.upkeep.workspace_check import examine
from coevo.lineage.workspace import Workspace


def fsck(workspace, *runs):
    """Findings, of these runs or of all; empty where everything agrees."""
    return examine(Workspace(Path(workspace).absolute()), runs, lambda _: None).findings


def fingerprint(root):
    """Path, kind and content of everything below a directory."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "dir"
        for path in root.rglob("*")
    }
