"""What the protocol needs of the store behind a remote, over what DVC's file systems can do anyway."""

from dataclasses import dataclass
from typing import Any, Protocol

from configs.errors import CoevoError

LIMIT = 1 << 26
"""Bytes of a small file; of a larger one, one byte more is read, so that it is seen to be too large."""


@dataclass(frozen=True)
class Held:
    """A small file as it was read.

    Attributes:
        content: its bytes.
        stamp: differs after any change to it.
    """

    content: bytes
    stamp: str


class Store(Protocol):
    """Files under one root, at a place that people name by ``label``."""

    label: str
    root: str
    """Path of the root in ``fs``."""

    @property
    def fs(self) -> Any:
        """DVC's file system."""
        ...

    def prepare(self) -> None:
        """Make the root, where a first push needs that."""
        ...

    def names(self, *folder: str) -> list[str]:
        """Names in a folder; none where it is missing. A missing root, or bucket, is an error."""
        ...

    def read(self, *path: str) -> Held | None:
        """A small file; None where it is missing."""
        ...

    def write(self, content: bytes, held: Held | None, *path: str) -> None:
        """Replace a small file at once, if it is still the one that was read.

        Raises:
            Overtaken: it is not.
        """
        ...


class Overtaken(CoevoError):  # noqa: N818
    """Somebody else has written the file meanwhile."""
