"""Small files that are either the old one or the new one, whenever the process dies."""

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace a UTF-8 file by temporary file, fsync and rename."""
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
