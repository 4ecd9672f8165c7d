"""The ``.dvc`` file of an artifact, which names its object in the cache. coevo writes and reads only one form of it."""

import re
from dataclasses import dataclass
from typing import Self

from coevo.lineage.names import ARTIFACT, OBJECT
from coevo.utilities.errors import CoevoError

SUFFIX = ".dvc"
LIMIT = 1024
"""Maximum bytes; a genuine file has about 120."""
FORM = re.compile(
    rf"outs:\n- md5: (?P<content>{OBJECT})\n  size: (?P<size>0|[1-9][0-9]{{0,17}})\n"
    rf"(?:  nfiles: (?P<files>0|[1-9][0-9]{{0,8}})\n)?  hash: md5\n  path: (?P<name>{ARTIFACT})\n"
)


@dataclass(frozen=True)
class Pointer:
    """Content of a ``.dvc`` file.

    Attributes:
        name: of the artifact.
        content: its content hash.
        size: bytes of its files.
        files: number of its files; None for an artifact that is a single file.
    """

    name: str
    content: str
    size: int
    files: int | None

    def text(self) -> str:
        """Text of the file, as ``dvc add`` writes it."""
        count = "" if self.files is None else f"  nfiles: {self.files}\n"
        return f"outs:\n- md5: {self.content}\n  size: {self.size}\n{count}  hash: md5\n  path: {self.name}\n"

    @classmethod
    def parse(cls, text: str, name: str) -> Self:
        """Inverse of ``text``, for the artifact ``name``.

        Raises:
            CoevoError: it is not in this form, or names another path than its own.
        """
        found = FORM.fullmatch(text)
        if found is None:
            raise CoevoError(f"{name}{SUFFIX} is not as coevo writes it")
        if found["name"] != name:
            raise CoevoError(f"{name}{SUFFIX} names the path {found['name']!r}, not {name!r}")
        files = found["files"]
        return cls(name, found["content"], int(found["size"]), None if files is None else int(files))
