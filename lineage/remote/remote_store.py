"""A remote's store: operations that the protocol needs in addition to those of DVC's file systems.

Every error of a store is a message of one line.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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

    def write(self, content: bytes, held: SmallFile | None, *path: str) -> SmallFile:
        """Replace a small file at once, if it is still the one that was read; return the new one.

        Raises:
            Overtaken: it is not.
        """
        ...


class Overtaken(CoevoError):  # noqa: N818
    """Another process has written the file meanwhile."""


SILENCE = ("Connect", "Endpoint", "Timeout")
"""Parts of botocore's error names for a server that does not answer."""


@contextmanager
def one_line(store: Store) -> Iterator[None]:
    """Translate errors of the store.

    Raises:
        CoevoError: in place of the original error.
    """
    from dvc_objects.errors import ObjectDBError, ObjectFormatError

    try:
        yield
    except CoevoError:
        raise
    except (OSError, ObjectDBError, ObjectFormatError, *_botocore()) as error:
        raise CoevoError(f"remote {store.label}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    said = " ".join(str(error).split())[:200]
    if "bucket does not exist" in said:
        return "no such bucket: create it, or name another one"
    if isinstance(error, PermissionError):
        return f"permission denied ({said}): check who owns it, or the AWS_* keys"
    if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
        return "no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if isinstance(error, ConnectionError) or any(word in type(error).__name__ for word in SILENCE):
        return f"no answer ({said}): check AWS_ENDPOINT_URL and the network, then repeat the command"
    return f"{said}: fix that, then repeat the command"


def _botocore() -> tuple[type[BaseException], ...]:
    # Without the extra it is not installed; without an S3 remote it is not loaded.
    found = sys.modules.get("botocore.exceptions")
    return (found.BotoCoreError, found.ClientError) if found else ()
