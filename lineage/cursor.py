"""How far a run's revisions have been published. Publishing twice does no harm, so the cursor may lag."""

import json
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
        if not self.path.exists():
            return -1
        return int(json.loads(self.path.read_text(encoding="utf-8"))["published"])

    def advance(self, revision: int) -> None:
        """Record that all revisions up to this one are published."""
        write_atomically(self.path, json.dumps({"published": revision}) + "\n")

    def unpublished(self, lineage: Lineage) -> list[Manifest]:
        """Revisions still to be published, oldest first."""
        return lineage.log(after=self.read())
