"""What the machine refuses (room, writing, more open files) in one line, whichever library it was refused to."""

import errno
import os
import re

ROOM, WRITABLE = "make room", "make it writable, or name another directory with --workspace"
REMEDIES = {
    errno.ENOSPC: ROOM,
    errno.EDQUOT: ROOM,
    errno.EFBIG: "make room, or raise the limit that `ulimit -f` shows",
    errno.EROFS: WRITABLE,
    errno.EACCES: WRITABLE,
    errno.EPERM: WRITABLE,
    errno.EIO: "check the disk",
    errno.EMFILE: "raise the limit that `ulimit -n` shows",
}
GIT_FULL = "Out of diskspace"
"""How git says that there is no room for its index."""
RUST = re.compile(r"\(os error (\d+)\)")
"""How Lance and safetensors, which raise errors of their own, write the system's."""


def fault(error: BaseException) -> str | None:
    """What the system refused, and the remedy; None for an error of another kind."""
    number = _number(error)
    if number not in REMEDIES:
        return None
    where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
    return (
        f"{where}{os.strerror(number)}: {REMEDIES[number]}; what is committed is safe, `coevo resume` goes on from it"
    )


def remedy(said: str) -> str:
    """What to do about a program's message that ends in one of the system's refusals, after a colon; else empty."""
    if GIT_FULL in said:
        return f": {ROOM}"
    return next((f": {what}" for number, what in REMEDIES.items() if os.strerror(number) in said), "")


def _number(error: BaseException) -> int:
    if isinstance(error, OSError):
        return error.errno or 0
    written = RUST.search(str(error))
    return int(written[1]) if written else 0
