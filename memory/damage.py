"""What Lance raises of damaged files, as one line."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from configs.errors import CoevoError

os.environ.setdefault("LANCE_LOG", "error")  # before Lance is imported: what it warns of is no concern of a user
PANICS = ("RustPanic", "PanicException")
"""Raised where code of Lance's panics over what it reads; the classes cannot be imported."""
NOISE = re.compile(rb"\n?^thread '.*panicked at .*\n(?:.+\n)*", re.MULTILINE)
"""Report of a panic on standard error, as Rust writes it: it ends with an empty line."""
VARYING = re.compile(r"\b(?<=task) \d+(?= panicked)|\S*\bcoevo-\w{8}/|, /\S+\.rs:\d+:\d+")
"""Parts of a message that differ from one reading to the next, or that only who makes Lance understands."""
STDERR = 2


class UnreadableError(CoevoError):
    """The files of a table are damaged or gone; ``reason`` is what Lance says."""

    def __init__(self, table: str, reason: str, version: int | None = None) -> None:
        which = "" if version is None else f"version {version}: "
        super().__init__(f"bank table {table} cannot be read: {which}{reason}: `coevo fsck` says what can be done")
        self.reason = reason


@contextmanager
def readable(table: str, version: int | None = None) -> Iterator[None]:
    """Translate what Lance raises, and keep Rust's reports of it off standard error.

    Raises:
        UnreadableError: it raised something that damaged files make it raise.
    """
    try:
        with _REPORTS:
            yield
    except (ValueError, RuntimeError, OSError, pa.ArrowException) as error:
        raise UnreadableError(table, said(error), version) from error
    except BaseException as error:
        if type(error).__name__ not in PANICS:
            raise
        raise UnreadableError(table, said(error), version) from error


def said(error: BaseException) -> str:
    """The message on one line, the same each time, and not more of it than one reads."""
    return VARYING.sub("", " ".join(str(error).split()))[:160]


class _Reports:
    """Standard error of this process without the reports of panics, while anybody is within.

    Rust writes them to the file descriptor before Python hears of the panic; the rest is passed on at the end.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._within = 0
        self._held = self._kept = -1

    def __enter__(self) -> None:
        with self._lock:
            self._within += 1
            if self._within == 1:
                self._begin()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if self._within == 0:
                self._end()

    def _begin(self) -> None:
        try:
            self._held = os.dup(STDERR)
        except OSError:  # a process without standard error has nothing to keep clean
            self._held = -1
            return
        self._kept = os.memfd_create("stderr")
        os.dup2(self._kept, STDERR)

    def _end(self) -> None:
        if self._held < 0:
            return
        os.dup2(self._held, STDERR)
        written = os.pread(self._kept, os.fstat(self._kept).st_size, 0)
        passed = NOISE.sub(b"", written)
        while passed:
            passed = passed[os.write(STDERR, passed) :]
        os.close(self._held)
        os.close(self._kept)


_REPORTS = _Reports()
