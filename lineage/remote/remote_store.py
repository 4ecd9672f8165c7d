"""Operations that the protocol needs of a remote's store, in addition to those of DVC's file systems."""

from dataclasses import dataclass
from typing import Any, Protocol

from coevo.utilities.errors import CoevoError

LIMIT = 1 << 26
"""Maximum bytes of a small file; of a larger one, one byte more is read to detect its size."""


@dataclass(frozen=True)
class SmallFile:
    """A small file as it was read.

    Attributes:
        content: its bytes.
        stamp: differs after any change to it.
    """

    content: bytes
    stamp: str


class Store(Protocol):
    """Files under one root, at a place that users name by ``label``."""

    label: str
    root: str
    """Path of the root in ``fs``."""

    @property
    def fs(self) -> Any:
        """DVC's file system."""
        ...

    def prepare(self) -> None:
        """Create the root if a first push needs that."""
        ...

    def names(self, *folder: str) -> list[str]:
        """Names in a folder; empty if it is missing. A missing root, or bucket, is an error."""
        ...

    def read(self, *path: str) -> SmallFile | None:
        """Read a small file; None if it is missing."""
        ...

    def write(self, content: bytes, held: SmallFile | None, *path: str) -> None:
        """Replace a small file at once, if it is still the one that was read.

        Raises:
            Overtaken: it is not.
        """
        ...


class Overtaken(CoevoError):  # noqa: N818
    """Another process has written the file meanwhile."""
