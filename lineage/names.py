"""Names of runs, artifacts and tables, and hashes: each becomes a path, so none may lead out of its directory."""

import re
from collections.abc import Collection
from pathlib import PurePosixPath

RUN = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
ARTIFACT = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"
TABLE = r"[A-Za-z0-9_]{1,64}"
OBJECT = r"[0-9a-f]{32}(?:\.dir)?"
"""Content hash of a file; with the suffix, of a list of files."""
FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters and surrogates, which UTF-8 cannot encode."""
MAX_PART_BYTES = 255
MAX_PATH_BYTES = 1024
"""Maximum bytes of one part of a path, and of the whole path."""


def is_inner(path: object) -> bool:
    """Return True if a value is the path of a file below a directory, in DVC's format."""
    if not isinstance(path, str) or FORBIDDEN.search(path):
        return False
    pure = PurePosixPath(path)
    sizes = [len(part.encode()) for part in pure.parts]
    fits = bool(sizes) and max(sizes) <= MAX_PART_BYTES and sum(sizes) <= MAX_PATH_BYTES
    # No part is hidden: git, DVC and other programs read files such as .git/config in any working directory.
    hidden = any(part.startswith(".") for part in pure.parts)
    return fits and not hidden and pure.as_posix() == path and not pure.is_absolute()


def first_clash(paths: Collection[str]) -> str | None:
    """Find a path that is also a directory of another one, so that both cannot be files; None if none exists."""
    parents = {parent.as_posix() for path in paths for parent in PurePosixPath(path).parents}
    return next((path for path in paths if path in parents), None)
