"""Small files that are either the old one or the new one, whenever the process dies."""

import hashlib
import os
from contextlib import ExitStack
from errno import ENOTDIR
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace a UTF-8 file by temporary file, fsync and rename; where that fails, nothing is left."""
    fresh = path.with_name(f".{path.name}.new")
    with ExitStack() as left:
        with fresh.open("w", encoding="utf-8", newline="\n") as file:
            left.callback(fresh.unlink, missing_ok=True)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)


def make_private(directory: Path) -> None:
    """Make a directory that is nobody else's business; one that is there keeps its mode.

    Raises:
        OSError: it cannot be made, or something else has its name.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        if not directory.is_dir():
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(directory)) from None


def content_hash(directory: Path) -> str:
    """SHA-256 (hex) over path and content of every file of a directory."""
    total = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{content} {path.relative_to(directory).as_posix()}\n".encode())
    return total.hexdigest()


def hash_beside(directory: Path) -> Path:
    """File that says which content a directory had when it was made."""
    return directory.with_suffix(".sha256")


def as_made(directory: Path) -> bool:
    """Whether a directory has the content that the hash beside it names."""
    noted = hash_beside(directory)
    return noted.is_file() and noted.read_text(encoding="utf-8", errors="replace").strip() == content_hash(directory)
