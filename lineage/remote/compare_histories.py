"""Comparison of two histories of a run: which one is longer, or where they diverge."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class HistoryComparison:
    """History here and there, as commits by revision number.

    Attributes:
        here: commits of the workspace.
        there: commits of the remote.
    """

    here: Sequence[str]
    there: Sequence[str]

    @property
    def shared(self) -> int:
        """Number of revisions that are equal."""
        pairs = enumerate(zip(self.here, self.there, strict=False))
        return next((n for n, (ours, theirs) in pairs if ours != theirs), min(len(self.here), len(self.there)))

    @property
    def ahead(self) -> bool:
        """True if the workspace has more revisions on the same line."""
        return self.shared == len(self.there) < len(self.here)

    @property
    def behind(self) -> bool:
        """True if the remote has more revisions on the same line."""
        return self.shared == len(self.here) < len(self.there)

    @property
    def diverged(self) -> bool:
        """True if both have revisions that the other lacks."""
        return self.shared < min(len(self.here), len(self.there))

    def parted(self) -> str:
        """First revisions that differ, in words, for a diverged history."""
        n = self.shared
        return (
            f"from revision {n} on they differ, {self.here[n][:12]} here and {self.there[n][:12]} there "
            f"(up to revision {len(self.here) - 1} here, {len(self.there) - 1} there)"
        )
