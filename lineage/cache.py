"""The cache that all runs share: content-addressed files, and lists (``.dir``) of the files of a directory.

    <root>/files/md5/<first two digits>/<the rest>

DVC trusts whatever is read-only there; here everything is read and compared with the hash that names it.
"""

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from configs.errors import CoevoError
from lineage.content import md5, read_list
from lineage.names import OBJECT as FORM
from lineage.usage import allocated

OBJECT = re.compile(FORM)
LISTING = ".dir"
"""Suffix of an object that lists the files of a directory."""
REMEDY = "bring it back from a copy of the cache, or go on from another revision with `coevo rollback`"
PROBLEMS = {"missing": "is missing", "corrupt": "is damaged"}


class Cache:
    """The objects under ``root``, by content hash; that of a directory ends with ``.dir``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, content: str) -> Path:
        """Where the object with this content hash is kept.

        Raises:
            CoevoError: it is no content hash, so the path could lead anywhere.
        """
        if not OBJECT.fullmatch(content):
            raise CoevoError(f"{content[:100]!r} is no content hash: look at what names it, and trust it no more")
        return self.root / "files" / "md5" / content[:2] / content[2:]

    def files(self, content: str) -> dict[str, str]:
        """Content hash of each file of an artifact by relative path; "." for a single file.

        Raises:
            CoevoError: its list is not one.
            OSError: its list is not there.
        """
        return read_list(self.path(content)) if content.endswith(LISTING) else {".": content}

    def problem(self, content: str) -> str | None:
        """What is wrong with an object: ``missing``, ``corrupt``, or nothing."""
        path = self.path(content)
        if not path.is_file():
            return "missing"
        return None if md5(path) == content.removesuffix(LISTING) else "corrupt"

    def check(self, content: str) -> None:
        """Read all of an artifact.

        Raises:
            CoevoError: an object is missing or damaged; names its file.
        """
        self._check(content)
        for name in sorted(set(self.files(content).values()) - {content}):
            self._check(name)

    def place(self, content: str, into: Path) -> None:
        """Link an artifact to ``into``, or copy it where that cannot be; the cache is only read.

        Raises:
            CoevoError: its list is not one.
            OSError: it is not in the cache, or there is no room.
        """
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

    def adopt(self, file: Path, content: str) -> None:
        """Move a file in, which has this content."""
        target = self.path(content)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.chmod(0o444)
        file.replace(target)

    def objects(self) -> dict[str, int]:
        """Bytes that each object takes on disk."""
        found = (self.root / "files" / "md5").glob("[0-9a-f][0-9a-f]/*")
        return {path.parent.name + path.name: allocated(path) for path in found}

    def closure(self, contents: Mapping[str, str]) -> set[str]:
        """The objects that artifacts consist of.

        Args:
            contents: for each artifact's content hash, who needs it.

        Raises:
            CoevoError: an artifact is not in the cache, so what it consists of is unknown.
        """
        return {oid for content, owner in contents.items() for oid in (content, *self._parts(content, owner))}

    def remove(self, objects: Iterable[str]) -> None:
        """Remove objects; lists of directories go first, so that none is left whose files are gone."""
        for oid in sorted(objects, key=lambda oid: not oid.endswith(LISTING)):
            self.path(oid).unlink(missing_ok=True)

    def remove_damaged(self, objects: Iterable[str]) -> None:
        """Remove those of these objects that are not what their names say, so that sound ones can be added."""
        self.remove([oid for oid in objects if self.problem(oid) == "corrupt"])

    def _check(self, content: str) -> None:
        problem = self.problem(content)
        if problem is not None:
            raise CoevoError(f"{self.path(content)} {PROBLEMS[problem]}: {REMEDY}")

    def _parts(self, content: str, owner: str) -> Iterable[str]:
        try:
            return self.files(content).values()
        except (CoevoError, OSError) as error:
            raise CoevoError(
                f"{owner}: object {content} is not readable in {self.root}, so what it needs is unknown: "
                "bring the cache back from a copy; nothing was removed"
            ) from error
