"""One-line messages for errors of the operating system (disk full, read-only, open files), from any library."""

import errno
import os
import re

MAKE_ROOM, WRITABLE = "make room", "make it writable, or name another directory with --workspace"
ELSEWHERE = "the file system lacks locks or links, see `coevo doctor`: name a directory on another with --workspace"
REMEDIES = {
    errno.ENOSPC: MAKE_ROOM,
    errno.EDQUOT: MAKE_ROOM,
    errno.EFBIG: "make room, or raise the limit that `ulimit -f` shows",
    errno.EROFS: WRITABLE,
    errno.EACCES: WRITABLE,
    errno.EPERM: WRITABLE,
    errno.EIO: "check the disk",
    errno.ENOLCK: ELSEWHERE,
    errno.ENOSYS: ELSEWHERE,
    errno.EOPNOTSUPP: ELSEWHERE,
    errno.EMFILE: "raise the limit that `ulimit -n` shows",
}
GIT_FULL = ("Out of diskspace", "couldn't write '")
"""Messages of git if the disk has no room for its index, or for a reference in a lock that it has already opened."""
RUST = re.compile(r"\(os error (\d+)\)")
"""Form in which Lance and safetensors, whose errors are their own classes, write the system's error number."""


def fault(error: BaseException) -> str | None:
    """Reason and remedy of a system error; None for an error of another kind."""
    number = _number(error)
    if number not in REMEDIES:
        return None
    where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
    return (
        f"{where}{os.strerror(number)}: {REMEDIES[number]}; what is committed is safe, `coevo resume` continues from it"
    )


def remedy(said: str) -> str:
    """Remedy for a program's message that ends with a system error, after a colon; else empty."""
    if any(message in said for message in GIT_FULL):
        return f": {MAKE_ROOM}"
    return next((f": {what}" for number, what in REMEDIES.items() if os.strerror(number) in said), "")


def _number(error: BaseException) -> int:
    if isinstance(error, OSError):
        return error.errno or 0
    written = RUST.search(str(error))
    return int(written[1]) if written else 0
