"""Free space: checked before something large is written, so that a full disk is found before work is lost."""

import shutil
from pathlib import Path

from coevo.utilities.errors import CoevoError


def require_space(path: Path, needed: int, purpose: str) -> None:
    """Check that a disk has room.

    Args:
        path: a directory on the disk; it need not exist yet.
        needed: bytes.
        purpose: what they are for, as the subject of the message.

    Raises:
        CoevoError: fewer bytes are free.
    """
    left = free(path)
    if left < needed:
        raise CoevoError(
            f"{path}: {purpose} needs {size(needed)} and {size(left)} are free: make room, see `coevo gc`; what is "
            "committed is safe, `coevo resume` continues from it"
        )


def free(directory: Path) -> int:
    """Free bytes on the disk of a directory, which need not exist yet."""
    there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def size(count: float) -> str:
    """Format bytes with a unit."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{_digits(count)} {unit}"
        count /= 1024
    return f"{_digits(count)} GiB"


def _digits(count: float) -> str:
    """Three significant digits, or the whole number where that is longer."""
    return f"{count:.3g}" if abs(count) < 999.5 else f"{count:.0f}"
