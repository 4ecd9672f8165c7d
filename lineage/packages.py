"""Packages that commands of this workspace made, by digest, in ``packages.json`` next to the runs.

A package leaves the workspace for a registry, to which others may write. What comes back is the same package only if
its digest stands here; no remote reads or writes this file.
"""

import json
from pathlib import Path

from filelock import FileLock
from pydantic import ConfigDict, TypeAdapter, ValidationError

from coevo.lineage.atomic_files import content_hash, write_atomically
from coevo.utilities.errors import CoevoError

FILE = "packages.json"
KNOWN = TypeAdapter(dict[str, str], config=ConfigDict(defer_build=True))
"""``RUN@N`` by digest."""


class Packages:
    """The packages of a workspace.

    Args:
        workspace: its directory.
    """

    def __init__(self, workspace: Path) -> None:
        self._file = workspace / FILE

    def add(self, directory: Path, origin: str) -> None:
        """Record the package in a directory as one of ``RUN@N``."""
        with FileLock(self._file.with_suffix(".lock")):
            known = self._read() | {content_hash(directory): origin}
            write_atomically(self._file, json.dumps(known, indent=1, sort_keys=True) + "\n", private=True)

    def has(self, digest: str) -> bool:
        """Return True if this workspace made a package with this digest."""
        return digest in self._read()

    def _read(self) -> dict[str, str]:
        try:
            return KNOWN.validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        except ValidationError:
            raise CoevoError(
                f"{self._file}: damaged, so no package counts as made here: remove it and package the runs again"
            ) from None


def package_digest(directory: Path) -> str:
    """SHA-256 (hex) over path and content of every file of a package from elsewhere.

    Raises:
        CoevoError: a part of it is a link, whose content could change after the check.
    """
    link = next((path for path in directory.rglob("*") if path.is_symlink()), None)
    if link is not None:
        raise CoevoError(f"{link.relative_to(directory).as_posix()[:100]!r} of the package is a link: package it again")
    return content_hash(directory)
