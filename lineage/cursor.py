"""How far a run's revisions have been published, and whether that was brought to an end.

Publishing or closing twice does no harm, so the cursor may lag.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lineage.files import write_atomically
from lineage.lineage import Lineage
from lineage.manifest import Manifest


@dataclass(frozen=True)
class Cursor:
    """The last published revision, in a small JSON file at ``path``."""

    path: Path

    def read(self) -> int:
        """The last published revision; -1 before the first."""
        return int(self._read().get("published", -1))

    def is_open(self) -> bool:
        """Whether something was published since the last ``close``: who published it may have been killed."""
        return bool(self._read().get("open", False))

    def advance(self, revision: int) -> None:
        """Record that all revisions up to this one are published."""
        self._write({"published": revision, "open": True})

    def close(self) -> None:
        """Record that whoever was told of the revisions knows that no more come for now."""
        self._write({"published": self.read()})

    def unpublished(self, lineage: Lineage) -> list[Manifest]:
        """Revisions still to be published, oldest first."""
        return lineage.log(after=self.read())

    def _read(self) -> dict[str, int]:
        if not self.path.exists():
            return {}
        return dict(json.loads(self.path.read_text(encoding="utf-8")))

    def _write(self, content: Mapping[str, int]) -> None:
        write_atomically(self.path, json.dumps(content) + "\n")
