"""Cursor of a run's published revisions, with a mark for an unfinished publication.

Publishing or closing twice is harmless, so the cursor may lag; a cursor that is ahead would skip revisions.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True)
class Cursor:
    """The last published revision, in a small JSON file at ``path``."""

    path: Path

    def read(self) -> int:
        """Last published revision; -1 before the first.

        Raises:
            CoevoError: the file is damaged.
        """
        return int(self._read().get("published", -1))

    def check(self, lineage: Lineage) -> int:
        """Last published revision, checked against the history; publishers call this first.

        Raises:
            CoevoError: the file is damaged, or ahead of the history.
        """
        last = self.read()
        head = len(lineage.history.commits()) - 1
        if last > head:
            held = f"the last is {head}" if head >= 0 else "there is none yet"
            raise self._wrong(f"says that revision {last} is published, but {held}")
        return last

    def is_open(self) -> bool:
        """True if something was published after the last ``close``: its publisher may have been killed."""
        return bool(self._read().get("open", False))

    def advance(self, revision: int) -> None:
        """Record that all revisions up to this one are published."""
        self._write({"published": revision, "open": True})

    def close(self) -> None:
        """Record that receivers know that no more revisions follow for now."""
        self._write({"published": self.read()})

    def unpublished(self, lineage: Lineage) -> list[Manifest]:
        """Revisions still to be published, oldest first.

        Raises:
            CoevoError: as ``check``.
        """
        return lineage.history.log(after=self.check(lineage))

    def _read(self) -> Mapping[str, Any]:
        if not self.path.exists():
            return {}
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            content = None
        if not _is_sound(content):
            raise self._wrong("is damaged")
        return dict(content)

    def _wrong(self, what: str) -> CoevoError:
        return CoevoError(f"{self.path} {what}: repair it with `coevo fsck {self.path.parent.name} --repair`")

    def _write(self, content: Mapping[str, int]) -> None:
        write_atomically(self.path, json.dumps(content) + "\n")


def _is_sound(content: object) -> bool:
    last = content.get("published", -1) if isinstance(content, Mapping) else None
    return type(last) is int and last >= -1
