"""A remote in a directory, perhaps on a disk that several machines mount."""

import os
from pathlib import Path
from typing import Any

from filelock import FileLock

from coevo.lineage.atomic_files import open_regular
from coevo.lineage.remote.regular_files import careful_disk
from coevo.lineage.remote.remote_store import LIMIT, Overtaken, SmallFile
from coevo.utilities.errors import CoevoError

LOCK = ".lock"


class LocalStore:
    """Files under a directory."""

    def __init__(self, path: Path) -> None:
        self.fs: Any = careful_disk()
        self.root = str(path.absolute())
        self.label = str(path)

    def prepare(self) -> None:
        """Create the directory; its parent must exist, or a mistyped path would become a remote."""
        root = Path(self.root)
        if not root.parent.is_dir():
            raise CoevoError(f"remote {self.label}: {root.parent} does not exist: create it, or name another remote")
        root.mkdir(exist_ok=True)

    def names(self, *folder: str) -> list[str]:
        """Names in a folder."""
        root = Path(self.root)
        if not root.is_dir():
            raise CoevoError(f"remote {self.label}: no such directory: check the path, or push to it first")
        path = root.joinpath(*folder)
        return (
            sorted(entry.name for entry in path.iterdir() if not entry.name.startswith(LOCK)) if path.is_dir() else []
        )

    def read(self, *path: str) -> SmallFile | None:
        """Read a small file; None if it does not exist."""
        try:
            with open_regular(Path(self.root, *path)) as file:
                content = file.read(LIMIT + 1)
        except FileNotFoundError:
            return None
        return SmallFile(content, "")

    def write(self, content: bytes, held: SmallFile | None, *path: str) -> None:
        """Replace a small file by temporary file, fsync and rename, under the remote's lock."""
        target = Path(self.root, *path)
        fresh = Path(self.root, f"{LOCK}.new")
        with FileLock(Path(self.root, LOCK)):
            if self.read(*path) != held:
                raise Overtaken(f"{target} has changed meanwhile")
            # Created again: a link in its place would lead elsewhere.
            fresh.unlink(missing_ok=True)
            with fresh.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh.replace(target)
