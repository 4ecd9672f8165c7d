"""Artifacts (policy, optimizer, episodes) under DVC: content-addressed, in one cache shared by all runs.

Files in the work tree and in materialised artifacts may be hard links into the cache, so they are read-only: an
artifact is replaced as a whole, never modified in place.

``dvc_data`` and ``dvc_objects`` are DVC's own parts and promise no interface. They are used where ``dvc.repo.Repo``
does not fit: ``Repo.add`` indexes all artifacts, and links an object over the staged file even if it is damaged.
"""

import logging
import os
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from coevo.lineage.atomic_files import remove, write_atomically
from coevo.lineage.objects.cache import FULL_OR_DAMAGED, Cache
from coevo.lineage.objects.pointer import SUFFIX, Pointer
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from dvc_data.hashfile.db.local import LocalHashFileDB
    from dvc_data.hashfile.obj import HashFile

    from coevo.lineage.objects.dvc_repo import PrivateRepo

LINKS = ("hardlink", "copy")


class Artifacts:
    """The DVC side of a lineage whose work tree is ``root``."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root = root
        self.cache = cache

    def own(self) -> dict[str, str]:
        """DVC's configuration, text by path; the cache path is relative, so the workspace can be moved."""
        return {
            ".dvc/.gitignore": "/config.local\n/tmp\n/cache\n",  # as DVC writes it at each command
            ".dvc/config": "[core]\n    analytics = false\n    autostage = false\n    check_update = false\n"
            f'[cache]\n    dir = "{os.path.relpath(self.cache, self.root / ".dvc")}"\n    type = "{",".join(LINKS)}"\n',
        }

    def add(self, staged: Mapping[str, Path]) -> dict[str, str]:
        """Move staged files or directories into the work tree and the cache; return the content hash of each."""
        for name, path in staged.items():
            remove(self.root / name, self.root)
            shutil.move(path, self.root / name)
        with _one_line(f"adding {', '.join(staged)} to the cache"):
            return {name: self._add(name) for name in staged}

    def _add(self, name: str) -> str:
        """Equivalent of ``dvc add`` without its index of all artifacts and its database, which take most time."""
        from dvc_data.hashfile.build import build
        from dvc_data.hashfile.checkout import checkout
        from dvc_data.hashfile.transfer import transfer

        _quieten()
        cache, path = objects_in(self.cache), str(self.root / name)
        found, meta, content = build(cache, path, cache.fs, "md5")
        # DVC keeps an existing object, valid or not, and would link it over the staged file.
        Cache(self.cache).remove_damaged(_objects_of(content))
        transfer(found, cache, {content.hash_info}, hardlink=True, shallow=False)
        checkout(path, cache.fs, content, cache, force=True, relink=True, old=content)
        self._record(Pointer(name, str(content.hash_info.value), meta.size, meta.nfiles))
        return str(content.hash_info.value)

    def _record(self, pointer: Pointer) -> None:
        # A new inode: git treats a file of equal size as unchanged if a clock that was set back repeats its time.
        write_atomically(self.root / f"{pointer.name}{SUFFIX}", pointer.text())

    def names(self) -> set[str]:
        """Artifacts with a ``.dvc`` file in the work tree."""
        return {path.stem for path in self.root.glob("?*.dvc")}

    def sizes(self) -> dict[str, int]:
        """Bytes of each artifact, from its ``.dvc`` file in the work tree."""
        texts = {name: (self.root / f"{name}{SUFFIX}").read_text(encoding="utf-8") for name in self.names()}
        return {name: Pointer.parse(text, name).size for name, text in texts.items()}

    def forget(self, names: Collection[str]) -> None:
        """Remove artifacts and their ``.dvc`` files from the work tree."""
        for name in self.names().intersection(names):
            remove(self.root / f"{name}{SUFFIX}", self.root)
            remove(self.root / name, self.root)

    def checkout(self) -> list[str]:
        """Restore the work tree to its ``.dvc`` files; return the names of changed artifacts.

        Links in an artifact are removed first: DVC would write to and remove their targets.
        """
        for name in sorted(self.names()):
            if _holds_links(self.root / name):
                remove(self.root / name, self.root)
        with _one_line("restoring artifacts from the cache"):
            changed = self._repo.checkout(force=True)
        paths = [path for kind in ("added", "modified", "deleted") for path in changed[kind]]
        return sorted({Path(path).name for path in paths})

    def check_tree(self, contents: Mapping[str, str]) -> None:
        """Verify artifacts in the work tree, which shares its files with the cache, independently of DVC's own state.

        Raises:
            CoevoError: one does not have its content hash.
        """
        changed = {
            name: content for name, content in contents.items() if _content_of(self.root / name, self.cache) != content
        }
        Cache(self.cache).check(changed)
        if changed:
            raise CoevoError(f"artifact {', '.join(changed)}: changed in {self.root}: remove it there, then try again")

    def discard_locks(self) -> list[str]:
        """Remove the lock table of a killed process: DVC obeys it as soon as its pid is in use again."""
        held = self.locks()
        self._table.unlink(missing_ok=True)
        return held

    def locks(self) -> list[str]:
        """Lock table, relative to the work tree, if it records a holder."""
        held = self._table.is_file() and '"pid"' in self._table.read_text(encoding="utf-8")
        return [str(self._table.relative_to(self.root))] if held else []

    @property
    def _table(self) -> Path:
        return self.root / ".dvc" / "tmp" / "rwlock"

    def close(self) -> None:
        """Close DVC's database; the next use opens it again."""
        if "_repo" in self.__dict__:
            self._repo.close()
            del self._repo

    @cached_property
    def _repo(self) -> "PrivateRepo":
        from coevo.lineage.objects.dvc_repo import PrivateRepo

        _quieten()
        with _one_line(f"opening {self.root}"):
            return PrivateRepo(self.root)


def objects_in(cache: Path) -> "LocalHashFileDB":
    """DVC's object store in a cache directory."""
    from dvc_data.hashfile.db.local import LocalHashFileDB
    from dvc_objects.fs import LocalFileSystem

    return LocalHashFileDB(LocalFileSystem(), str(cache / "files" / "md5"), type=list(LINKS))


def _objects_of(content: "HashFile") -> set[str]:
    """Hashes of an artifact and, if it is a directory, of its files."""
    from dvc_data.hashfile.tree import Tree

    files = {str(entry.value) for _, _, entry in content} if isinstance(content, Tree) else set()
    return files | {str(content.hash_info.value)}


def _content_of(path: Path, cache: Path) -> str | None:
    """Content hash of an artifact in a work tree, computed again; None if it does not exist."""
    from dvc_data.hashfile.build import build

    if not path.exists():
        return None
    objects = objects_in(cache)
    _, _, found = build(objects, str(path), objects.fs, "md5", dry_run=True)
    return str(found.hash_info.value)


def _holds_links(path: Path) -> bool:
    return path.is_symlink() or any(inner.is_symlink() for inner in path.rglob("*"))


def _quieten() -> None:
    from dvc.ui import ui

    ui.error_console.quiet = True
    for name in ("dvc.progress", "dvc_data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _one_line(doing: str) -> Iterator[None]:
    from dvc.exceptions import DvcException
    from dvc_data.hashfile.checkout import CheckoutError, LinkError
    from dvc_objects.errors import ObjectDBError, ObjectFormatError

    try:
        yield
    except (DvcException, CheckoutError, LinkError, ObjectDBError, ObjectFormatError, sqlite3.Error, OSError) as error:
        said = " ".join(str(error).split())
        raise CoevoError(f"{doing} failed: {said}: {FULL_OR_DAMAGED}") from error
