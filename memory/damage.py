"""What Lance raises of damaged files, as one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from configs.errors import CoevoError

PANIC = "RustPanic"
"""Raised where a thread of Lance's panics over what it reads; the class cannot be imported."""


class UnreadableError(CoevoError):
    """The files of a table are damaged or gone; ``reason`` is what Lance says."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(f"bank table {table} cannot be read: {reason}: copy the run's bank/ back from a backup")
        self.reason = reason


@contextmanager
def readable(table: str) -> Iterator[None]:
    """Translate what Lance raises.

    Raises:
        UnreadableError: it raised something that damaged files make it raise.
    """
    try:
        yield
    except (ValueError, RuntimeError, OSError, pa.ArrowException) as error:
        raise UnreadableError(table, said(error)) from error
    except Exception as error:
        if type(error).__name__ != PANIC:
            raise
        raise UnreadableError(table, said(error)) from error


def said(error: Exception) -> str:
    """The message on one line, and not more of it than one reads."""
    return " ".join(str(error).split())[:160]
