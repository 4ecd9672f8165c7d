"""Temporary files of the tests in memory, where the system has room for them.

The tests write some 100,000 small files and sync most of them, for which a disk takes longer than the tests do.
"""

import os
import shutil
import tempfile
from pathlib import Path

PLACE = Path("/dev/shm")
"""A file system in memory, on Linux."""
ROOM = 4 << 30
"""Bytes that have to be free there: ten times what the tests have there at once."""


def keep_in_memory():
    """Make a folder in memory the place of temporary files, for this process and its children, and return it.

    pytest keeps the folder of a failed test beside it. None where there is no room, and where TMPDIR names a place.
    """
    if "TMPDIR" in os.environ or not _is_fit():
        return None
    folder = tempfile.TemporaryDirectory(prefix="coevo-tests-", dir=PLACE, ignore_cleanup_errors=True)
    os.environ["TMPDIR"] = tempfile.tempdir = folder.name
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(PLACE))
    return folder


def _is_fit():
    """Return True if it has the room, and programs in it may be run; containers often allow neither."""
    return PLACE.is_dir() and shutil.disk_usage(PLACE).free >= ROOM and not os.statvfs(PLACE).f_flag & os.ST_NOEXEC
