"""The cache during a check, and other copies of objects that it lost.

Every object is hashed once, however many revisions need it. Copies are in work trees, materialised artifacts and
warm-started policies; files of a work tree may be hard links into the cache, and the same inode is no other copy.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coevo.lineage.objects.cache import LISTING, Cache
from coevo.lineage.objects.content import md5
from coevo.lineage.workspace import Workspace


class CheckedCache(Cache):
    """The cache at ``root``, with the problems found so far."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._problems: dict[str, str | None] = {}

    def examine(self, contents: Iterable[str]) -> None:
        """Hash these objects in advance, several at a time."""
        new = sorted(set(contents) - self._problems.keys())
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self._problems.update(zip(new, pool.map(super().problem, new), strict=True))

    def problem(self, content: str) -> str | None:
        """Problem of an object: ``missing``, ``corrupt``, or None."""
        self.examine([content])
        return self._problems[content]

    def forget(self, content: str) -> None:
        """Hash an object again at its next use."""
        self._problems.pop(content, None)


PLACES = ("runs/*/lineage/*", "runs/*/scratch/*", "cache/warmstarts/*")
"""Glob patterns of artifacts, below the workspace."""


class Donors:
    """The cache's objects, and a finder of their content elsewhere in the workspace.

    Attributes:
        objects: objects of the cache; each is read once.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.objects = CheckedCache(workspace.cache)

    def of(self, content: str, name: Path) -> Path | None:
        """Find a file (for a listing, a directory) with this content.

        Args:
            content: hash of the object.
            name: its name in a revision: the artifact, and the path in it.
        """
        candidates = self._directories() if content.endswith(LISTING) else self._files(name)
        right = _listing_is if content.endswith(LISTING) else _file_is
        return next((path for path in candidates if right(path, content)), None)

    def restore(self, content: str, name: Path) -> bool:
        """Restore an object in the cache by temporary file and rename; return True if a copy was found."""
        source = self.of(content, name)
        if source is None:
            return False
        target = self.objects.path(content)
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(source, fresh)
        # Check the copy: its source may have changed since the search.
        if md5(fresh) == content.removesuffix(LISTING):
            fresh.replace(target)
        fresh.unlink(missing_ok=True)
        return True

    def _directories(self) -> Iterator[Path]:
        return (path for pattern in PLACES for path in sorted(self._workspace.root.glob(pattern)) if path.is_dir())

    def _files(self, name: Path) -> Iterator[Path]:
        inner = Path(*name.parts[1:])
        single = (path for pattern in PLACES for path in sorted(self._workspace.root.glob(pattern)))
        return (path / inner for path in single if (path / inner).is_file())


def _copy(source: Path, fresh: Path) -> None:
    """Write an object, read-only: a file's content, or a directory's listing."""
    if source.is_dir():
        fresh.write_bytes(listing(source))
    else:
        shutil.copyfile(source, fresh)
    fresh.chmod(0o444)


def listing(directory: Path) -> bytes:
    """Listing of a directory, in DVC's format."""
    from dvc_data.hashfile.hash_info import HashInfo
    from dvc_data.hashfile.meta import Meta
    from dvc_data.hashfile.tree import Tree

    tree = Tree()
    for path in directory.rglob("*"):
        if path.is_file():
            tree.add(path.relative_to(directory).parts, Meta(), HashInfo("md5", md5(path)))
    return bytes(tree.as_bytes())


def _listing_is(directory: Path, content: str) -> bool:
    return hashlib.md5(listing(directory), usedforsecurity=False).hexdigest() == content.removesuffix(LISTING)


def _file_is(path: Path, content: str) -> bool:
    return md5(path) == content
