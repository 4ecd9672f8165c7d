"""Interfaces that the lineage needs of a store outside the repository, such as the bank."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from coevo.lineage.revision.manifest import Manifest
from coevo.utilities.errors import CoevoError


class Snapshot(Protocol):
    """Versioned tables. A version number finds old content; a content hash verifies it."""

    def hashes(self) -> Mapping[str, str]:
        """Content hash of every table: equal content gives equal hashes in every run."""
        ...

    def versions(self) -> Mapping[str, int]:
        """Current version number of every table; restoring creates new numbers."""
        ...

    def restore(self, versions: Mapping[str, int], hashes: Mapping[str, str]) -> list[str]:
        """Restore every table whose content differs from ``hashes``; return the names of the restored ones."""
        ...


class Tables(Protocol):
    """Tables at some version."""

    def hashes(self) -> Mapping[str, str]:
        """Content hash of every table."""
        ...


class VersionedBank(Snapshot, Protocol):
    """A bank whose old versions can be read."""

    def at(self, versions: Mapping[str, int]) -> Tables:
        """Tables at these versions."""
        ...


OpenBank = Callable[[Path], VersionedBank]


def restore(bank: Snapshot, manifest: Manifest) -> list[str]:
    """Restore the tables of a revision that differ; return their names.

    Raises:
        CoevoError: a table cannot be restored.
    """
    touched = bank.restore(manifest.versions, manifest.tables)
    found = bank.hashes()
    lost = sorted(table for table, content in manifest.tables.items() if found.get(table) != content)
    if lost:
        raise CoevoError(f"table {', '.join(lost)} cannot be restored: continue from another one, `coevo rollback`")
    return touched
