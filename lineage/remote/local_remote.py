"""A remote in a directory, perhaps on a disk that several machines mount."""

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

from filelock import FileLock, Timeout
from fsspec.callbacks import DEFAULT_CALLBACK, Callback

from coevo.lineage.atomic_files import open_regular
from coevo.lineage.remote.remote_store import LIMIT, Overtaken, SmallFile
from coevo.utilities.errors import CoevoError
from coevo.utilities.free_space import require_space

LOCK = ".lock"
LOCK_TIMEOUT_S = 120.0
"""Seconds to wait for the lock, which is held for one small file."""
CHUNK = 1 << 20
"""Number of bytes in memory at once."""
FICLONE = 0x40049409
"""Linux: share the blocks of another open file (``linux/fs.h``)."""


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

    def write(self, content: bytes, held: SmallFile | None, *path: str) -> SmallFile:
        """Replace a small file by temporary file, fsync and rename, under the remote's lock."""
        target = Path(self.root, *path)
        fresh = Path(self.root, f"{LOCK}.new")
        with self._locked():
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
        return SmallFile(content, "")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        path = Path(self.root, LOCK)
        try:
            with FileLock(path, timeout=LOCK_TIMEOUT_S):
                yield
        except Timeout:
            raise CoevoError(
                f"remote {self.label}: another process has held {path} for {LOCK_TIMEOUT_S:g} s: end it, then repeat "
                "the command"
            ) from None


def careful_disk() -> Any:
    """Create the file system, as either side of a transfer."""
    from dvc_objects.fs import LocalFileSystem
    from dvc_objects.fs.local import FsspecLocalFileSystem

    class Careful(FsspecLocalFileSystem):  # type: ignore[misc]
        def put_file(self, lpath: str, rpath: str, callback: Callback = DEFAULT_CALLBACK, **_: Any) -> None:
            copy_regular(Path(lpath), Path(rpath), callback)

        def open(self, path: str, mode: str = "r", **options: Any) -> Any:
            return open_regular(Path(path)) if mode == "rb" else super().open(path, mode, **options)

        def reflink(self, path1: str, path2: str) -> None:
            raise OSError(errno.ENOTSUP, f"{path1} is cloned by put_file, from the file that was checked")

    return LocalFileSystem(fs=Careful())


def copy_regular(source: Path, target: Path, callback: Callback) -> None:
    """Copy a file by temporary file and rename; a failure leaves nothing behind.

    Raises:
        CoevoError: it is not a regular file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{token_hex(8)}")
    with ExitStack() as left:
        with open_regular(source) as held, fresh.open("wb") as file:
            left.callback(fresh.unlink, missing_ok=True)
            counts: Iterable[int] = _clone(held, file)
            if not counts:
                require_space(target.parent, os.fstat(held.fileno()).st_size, f"a copy of {source}")
                counts = _copy(held, file)
            for count in counts:
                callback.relative_update(count)
        fresh.replace(target)


def _clone(source: IO[bytes], target: IO[bytes]) -> list[int]:
    """Share the blocks of a file; return its size in bytes, or nothing if the file system cannot."""
    try:
        fcntl.ioctl(target.fileno(), FICLONE, source.fileno())
    except OSError:
        return []
    return [os.fstat(target.fileno()).st_size]


def _copy(source: IO[bytes], target: IO[bytes]) -> Iterator[int]:
    """Copy a file; yield the number of bytes of each chunk."""
    while chunk := source.read(CHUNK):
        yield target.write(chunk)
