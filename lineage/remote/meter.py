"""How a transfer tells how far it is."""

from dataclasses import dataclass
from typing import Protocol


class Meter(Protocol):
    """Hears of progress; calls may come from several threads."""

    def begin(self, doing: str, files: int) -> None:
        """So many files follow."""
        ...

    def advance(self, files: int, size: int) -> None:
        """So many files are done, so many bytes moved, since the last call."""
        ...


@dataclass(frozen=True)
class Moved:
    """What a transfer moved; files that were there already do not count.

    Attributes:
        files: number of files.
        size: their bytes.
    """

    files: int = 0
    size: int = 0

    def __add__(self, other: "Moved") -> "Moved":
        return Moved(self.files + other.files, self.size + other.size)
