"""The cache of all runs: content-addressed files, and listings (``.dir``) of the files of an artifact."""

import hashlib
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LISTING = ".dir"


class Objects:
    """The cache at ``root``; every object is hashed once, however many revisions need it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._problems: dict[str, str | None] = {}

    def path(self, content: str) -> Path:
        """Where the object with this content hash is kept."""
        return self.root / "files" / "md5" / content[:2] / content[2:]

    def files(self, content: str) -> dict[str, str]:
        """Content hash of each file of an artifact by relative path; "." for a single file. Its listing is sound."""
        if not content.endswith(LISTING):
            return {".": content}
        listed = json.loads(self.path(content).read_text(encoding="utf-8"))
        return {entry["relpath"]: entry["md5"] for entry in listed}

    def examine(self, contents: Iterable[str]) -> None:
        """Hash these objects beforehand, several at a time."""
        new = sorted(set(contents) - self._problems.keys())
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self._problems.update(zip(new, pool.map(self._examine, new), strict=True))

    def problem(self, content: str) -> str | None:
        """What is wrong with an object: ``missing``, ``corrupt``, or nothing."""
        self.examine([content])
        return self._problems[content]

    def forget(self, content: str) -> None:
        """Look at an object anew."""
        self._problems.pop(content, None)

    def _examine(self, content: str) -> str | None:
        path = self.path(content)
        if not path.is_file():
            return "missing"
        return None if md5(path) == content.removesuffix(LISTING) else "corrupt"


def md5(path: Path) -> str:
    """MD5 (hex) of a file, as the cache names it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
