"""Errors of Lance about damaged files, as one line."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from coevo.utilities.errors import CoevoError

os.environ.setdefault("LANCE_LOG", "error")  # set before the import of Lance: its warnings do not concern users
PANICS = ("RustPanic", "PanicException")
"""Exceptions for panics in Lance's code; the classes cannot be imported."""
NOISE = re.compile(rb"\n?^thread '.*panicked at .*\n(?:.+\n)*", re.MULTILINE)
"""Report of a panic on standard error, as Rust writes it; it ends with an empty line."""
VARYING = re.compile(r"\b(?<=task) \d+(?= panicked)|\S*\bcoevo-\w{8}/|, /\S+\.rs:\d+:\d+")
"""Parts of a message that vary between reads, or that concern only Lance's developers."""
STDERR = 2


class UnreadableError(CoevoError):
    """Damaged or missing files of a table; ``reason`` is Lance's message."""

    def __init__(self, table: str, reason: str, version: int | None = None) -> None:
        which = "" if version is None else f"version {version}: "
        super().__init__(f"bank table {table} cannot be read: {which}{reason}: `coevo fsck` lists remedies")
        self.reason = reason


@contextmanager
def readable(table: str, version: int | None = None) -> Iterator[None]:
    """Translate Lance's exceptions, and keep Rust's reports of them off standard error.

    Raises:
        UnreadableError: Lance raised an exception that damaged files can cause.
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
    """Message of an exception on one line, shortened, without varying parts."""
    return VARYING.sub("", " ".join(str(error).split()))[:160]


class _Reports:
    """Standard error of this process without reports of panics, while any thread is inside.

    Rust writes reports to the file descriptor before Python sees the panic; other output is passed on at the end.
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
        except OSError:  # a process without standard error needs no filter
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
