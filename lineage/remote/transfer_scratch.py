"""Scratch directory of a transfer, locked, empty at the start and removed at the end."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from coevo.utilities.errors import CoevoError


@contextmanager
def scratch_directory(path: Path, doing: str) -> Iterator[Path]:
    """Hold the directory ``path``, locked by ``<path>.lock``.

    Args:
        path: on the disk of the files' final place.
        doing: activity of another process that holds it, for the message.

    Raises:
        CoevoError: another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_suffix(".lock"), blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise CoevoError(f"{doing} by another process: wait for it") from None
    try:
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        lock.release()
