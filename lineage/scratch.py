"""Temporary directories of commands, in the workspace.

Artifacts of the cache are linked into them, not copied, and servers on other machines that share the workspace find
their files. ``TMPDIR`` often offers neither, and is too small for a model.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

from filelock import FileLock

from coevo.lineage.atomic_files import make_private
from coevo.lineage.lock import if_free


@contextmanager
def scratch_directory(workspace: Path) -> Iterator[Path]:
    """Directory ``<workspace>/scratch/<name>`` for the block; those of killed processes are removed first.

    If this user may not write to the workspace, it is below ``TMPDIR``.
    """
    if not os.access(workspace, os.W_OK):
        with TemporaryDirectory(prefix="coevo-") as elsewhere:
            yield Path(elsewhere)
        return
    parent = workspace / "scratch"
    make_private(parent)
    _clear(parent)
    made = parent / token_hex(8)
    with FileLock(_lock_of(made), thread_local=False):
        made.mkdir()
        try:
            yield made
        finally:
            _remove(made)
            with suppress(OSError):  # other commands use it
                parent.rmdir()


def _lock_of(directory: Path) -> Path:
    return directory.with_suffix(".lock")


def _clear(parent: Path) -> None:
    for lock in parent.glob("*.lock"):
        with if_free(lock) as free:
            if free:
                _remove(lock.with_suffix(""))


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    _lock_of(directory).unlink(missing_ok=True)
