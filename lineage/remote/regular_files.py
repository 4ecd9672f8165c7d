"""DVC's file system of this machine, restricted to regular files: others write to a remote's directory.

DVC opens every kind of file, first of all for a reflink: a pipe would block it forever, and a device has no end.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

from fsspec.callbacks import DEFAULT_CALLBACK, Callback

from coevo.lineage.atomic_files import open_regular

CHUNK = 1 << 20
"""Number of bytes in memory at once."""
FICLONE = 0x40049409
"""Linux: share the blocks of another open file (``linux/fs.h``)."""


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
            for count in _clone(held, file) or _copy(held, file):
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
