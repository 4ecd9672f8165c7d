"""Files of lines that are only appended to: each line is on the disk, whole, before it counts, or it is not there."""

import os
from errno import ENOSPC
from pathlib import Path

BLOCK_BYTES = 2**16
"""Bytes that are read at a time, from the end of a file backwards."""


def append_line(path: Path, line: str) -> None:
    """Append a line, or nothing, to a file on the disk.

    Args:
        path: the file, which is created if it is not there.
        line: text without a line break.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    whole = f"{line}\n".encode()
    with path.open("ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        try:
            if file.write(whole) < len(whole):
                raise OSError(ENOSPC, os.strerror(ENOSPC), str(path))
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise


def drop_torn_line(path: Path) -> None:
    """Remove a last line without its end, which a process that died has left; a file that is not there is none."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - BLOCK_BYTES)
            file.seek(begin)
            if (at := file.read(end - begin).rfind(b"\n")) >= 0:
                end = begin + at + 1
                break
            end = begin
        file.truncate(end)
        os.fsync(file.fileno())
