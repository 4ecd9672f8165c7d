"""The cache that all runs share: content-addressed files, and lists (``.dir``) of the files of a directory.

    <root>/files/md5/<first two digits>/<the rest>

DVC trusts every read-only file there; this module reads each file and compares it with the hash in its name.
"""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from coevo.lineage.atomic_files import remove
from coevo.lineage.names import OBJECT as FORM
from coevo.lineage.objects.content import md5, read_list
from coevo.utilities.errors import CoevoError

OBJECT = re.compile(FORM)
LISTING = ".dir"
"""Suffix of an object that lists the files of a directory."""
REMEDY = "restore it from a copy of the cache, or continue from another revision with `coevo rollback`"
FULL_OR_DAMAGED = "check that the workspace's cache is whole and has room"
PROBLEMS = {"missing": "is missing", "corrupt": "is damaged"}


class Cache:
    """Objects under ``root``, by content hash; the hash of a directory ends with ``.dir``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, content: str) -> Path:
        """Path of the object with this content hash.

        Raises:
            CoevoError: it is not a content hash, so the path could lead anywhere.
        """
        if not OBJECT.fullmatch(content):
            raise CoevoError(f"{content[:100]!r} is not a content hash: do not trust the file that names it")
        return self.root / "files" / "md5" / content[:2] / content[2:]

    def files(self, content: str) -> dict[str, str]:
        """Content hash of each file of an artifact by relative path; "." for a single file.

        Raises:
            CoevoError: its list is malformed.
            OSError: its list does not exist.
        """
        return read_list(self.path(content)) if content.endswith(LISTING) else {".": content}

    def problem(self, content: str) -> str | None:
        """Problem of an object: ``missing``, ``corrupt``, or None."""
        path = self.path(content)
        if not path.is_file():
            return "missing"
        return None if md5(path) == content.removesuffix(LISTING) else "corrupt"

    def check(self, contents: Mapping[str, str]) -> None:
        """Verify all objects of artifacts, by the content hash of each.

        Raises:
            CoevoError: an object is missing or damaged; names its artifact and its file.
        """
        for artifact, content in contents.items():
            try:
                self._check(content)
                for name in sorted(set(self.files(content).values()) - {content}):
                    self._check(name)
            except CoevoError as error:
                raise CoevoError(f"artifact {artifact!r}: {error}") from error

    def materialise(self, content: str, into: Path) -> None:
        """Link or copy an artifact to ``into``, which appears complete; the cache is only read.

        Raises:
            CoevoError: its list is malformed, it is not in the cache, or the disk is full.
        """
        fresh = into.with_name(f".{into.name}.{os.getpid()}")
        remove(fresh, into.parent)
        fresh.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._place(content, fresh)
        except OSError as error:
            said = " ".join(str(error).split())
            raise CoevoError(f"reading {into.name} from the cache failed: {said}: {FULL_OR_DAMAGED}") from error
        fresh.rename(into)

    def adopt(self, file: Path, content: str) -> None:
        """Move a file with this content into the cache."""
        target = self.path(content)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.chmod(0o444)
        file.replace(target)

    def objects(self) -> dict[str, int]:
        """Size of each object on disk in bytes."""
        found = (self.root / "files" / "md5").glob("[0-9a-f][0-9a-f]/*")
        return {path.parent.name + path.name: allocated(path) for path in found}

    def closure(self, contents: Mapping[str, str]) -> set[str]:
        """Objects that artifacts consist of.

        Args:
            contents: content hash of each artifact -> its owner, for messages.

        Raises:
            CoevoError: an artifact is not in the cache, so its files are unknown.
        """
        return {oid for content, owner in contents.items() for oid in (content, *self._parts(content, owner))}

    def remove(self, objects: Iterable[str]) -> None:
        """Remove objects; lists of directories first, so that no list outlives its files."""
        for oid in sorted(objects, key=lambda oid: not oid.endswith(LISTING)):
            self.path(oid).unlink(missing_ok=True)

    def remove_damaged(self, objects: Iterable[str]) -> None:
        """Remove the damaged ones of these objects, so that valid ones can be added."""
        self.remove([oid for oid in objects if self.problem(oid) == "corrupt"])

    def _place(self, content: str, into: Path) -> None:
        files = self.files(content)
        if content.endswith(LISTING):
            into.mkdir()
        for relative, name in files.items():
            target = into / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.hardlink_to(self.path(name))
            except OSError:
                shutil.copy(self.path(name), target)

    def _check(self, content: str) -> None:
        problem = self.problem(content)
        if problem is not None:
            raise CoevoError(f"{self.path(content)} {PROBLEMS[problem]}: {REMEDY}")

    def _parts(self, content: str, owner: str) -> Iterable[str]:
        try:
            return self.files(content).values()
        except (CoevoError, OSError) as error:
            raise CoevoError(
                f"{owner}: object {content} is not readable in {self.root}, so its files are unknown: "
                "restore the cache from a copy; nothing was removed"
            ) from error


def allocated(path: Path) -> int:
    """Size of one file on disk in bytes."""
    return path.stat().st_blocks * 512


def freed_by(path: Path) -> int:
    """Bytes that removing a file frees: 0 if another link to it exists."""
    return allocated(path) if path.stat().st_nlink == 1 else 0


def disk_usage(*folders: Path) -> int:
    """Size of all files below these folders on disk in bytes; a file with several links counts once."""
    found = [path.lstat() for folder in folders for path in folder.rglob("*") if path.is_file()]
    return sum({(stat.st_dev, stat.st_ino): stat.st_blocks * 512 for stat in found}.values())
