"""Which of two histories of a run goes further."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """Here and there, as commits by revision number.

    Attributes:
        here: those of the workspace.
        there: those of the remote.
    """

    here: Sequence[str]
    there: Sequence[str]

    @property
    def shared(self) -> int:
        """How many revisions are the same."""
        pairs = enumerate(zip(self.here, self.there, strict=False))
        return next((n for n, (ours, theirs) in pairs if ours != theirs), min(len(self.here), len(self.there)))

    @property
    def ahead(self) -> bool:
        """Here is more, on the same line."""
        return self.shared == len(self.there) < len(self.here)

    @property
    def behind(self) -> bool:
        """There is more, on the same line."""
        return self.shared == len(self.here) < len(self.there)

    @property
    def diverged(self) -> bool:
        """Both have revisions that the other has not."""
        return self.shared < min(len(self.here), len(self.there))

    def parted(self) -> str:
        """Where, for a diverged one: the first revisions that differ."""
        n = self.shared
        return (
            f"from revision {n} on they differ, {self.here[n][:12]} here and {self.there[n][:12]} there "
            f"(up to revision {len(self.here) - 1} here, {len(self.there) - 1} there)"
        )
