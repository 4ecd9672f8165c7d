"""Handling of Ctrl-C and SIGTERM: a message and an orderly exit; a second Ctrl-C exits immediately.

Python runs a signal handler in the main thread, between two instructions. C code of a library delays the handler, and a
library that catches every exception swallows the one that the handler raises. A separate thread therefore receives each
signal through Python's wakeup descriptor. It writes the message, and interrupts the main thread again while that does
not leave. It ends the process if this does not help, or at a second Ctrl-C. The process may end at any moment:
committed revisions are safe.

Loggers are off after a signal. A library may turn the interrupt into another error and log its traceback, as Prefect
does for errors while it is imported.
"""

import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LINE = "stopping; press Ctrl-C again to stop now"
COMMITTING = "stopping: committed revisions are safe; press Ctrl-C again to stop now"
BOUNCE_S = 0.2
"""Seconds within which a second Ctrl-C is a copy of the first one, forwarded by a parent process."""
POLL_INTERVAL_S = 0.3
"""Seconds between two checks of the main thread. After two checks in a row without leaving, it is interrupted again."""
MAX_INTERRUPTS = 3
"""Maximum number of times to interrupt the main thread again."""
CLOSED = 0
"""Byte that ends the thread; no signal has this number."""


class Stopped(KeyboardInterrupt):
    """Exception in the main thread after Ctrl-C or SIGTERM."""


class _Heed:
    """Signal handling of this process while a command runs."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.line = LINE
        self.said = threading.Event()
        self.actions: list[Callable[[], object]] = []
        self._main = threading.main_thread().ident or 0
        self._heard = 0.0
        self._ours = 0
        self._strays = 0
        self._tries = 0

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise ``Stopped`` unless the main thread is already leaving, and end all logging; Python's signal handler."""
        self.number = self.number or number
        logging.disable()
        if not _leaves(sys.exc_info()[1]):
            raise Stopped

    def listen(self, reader: int) -> None:
        """Handle the signals that arrive at ``reader``, until ``CLOSED``; runs in a separate thread."""
        while True:
            waits = POLL_INTERVAL_S if self.said.is_set() else None
            if not select.select([reader], [], [], waits)[0]:
                self._look()
                continue
            for number in os.read(reader, 64):
                if number == CLOSED:
                    return
                if number in SIGNALS:
                    self._hear(number)

    def _hear(self, number: int) -> None:
        if number == signal.SIGINT and self._ours:
            self._ours -= 1
            return
        if not self.said.is_set():
            self.number, self._heard = self.number or number, time.monotonic()
            _say(self.line)
            self.said.set()
        elif number == signal.SIGINT and time.monotonic() - self._heard > BOUNCE_S:
            self.end_now()

    def _look(self) -> None:
        """Interrupt the main thread again if something has swallowed the exception."""
        if signal.getsignal(signal.SIGINT) != self.interrupt or _leaves(_handled_by(self._main)):
            self._strays = 0
            return
        self._strays += 1
        if self._strays > 1:
            self._again()

    def _again(self) -> None:
        if self._tries == MAX_INTERRUPTS:
            self.end_now()
        self._tries += 1
        self._strays = 0
        self._ours += 1
        signal.pthread_kill(self._main, signal.SIGINT)

    def end_now(self) -> NoReturn:
        """Run the actions, then end the process."""
        try:
            for action in reversed(self.actions):
                action()
        finally:
            self.leave()

    def leave(self) -> NoReturn:
        """End the process immediately; no library can delay it."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # closed, or without a reader
                stream.flush()
        os._exit(128 + (self.number or signal.SIGINT))


_heeds: list[_Heed] = []
"""Signal handling of this process; empty unless a command runs."""


@contextmanager
def heeded() -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM inside the block.

    After such a signal, the process ends with the block, with exit code 128 + signal number. A nested block, or one
    outside the main thread, changes nothing. An ignored signal stays ignored.
    """
    if _heeds or threading.current_thread() is not threading.main_thread():
        yield
        return
    heed = _Heed()
    _heeds.append(heed)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    earlier = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=heed.listen, args=(reader,), name="interrupt", daemon=True)
    thread.start()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, heed.interrupt)
    unraisable, sys.unraisablehook = sys.unraisablehook, _unraisable
    try:
        yield
    finally:
        if heed.number is not None:
            if not heed.said.wait(BOUNCE_S):  # a library has replaced the wakeup descriptor
                _say(heed.line)
            heed.leave()
        sys.unraisablehook = unraisable
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(earlier)
        os.write(writer, bytes([CLOSED]))
        thread.join()
        os.close(reader)
        os.close(writer)
        _heeds.clear()


@contextmanager
def at_once(action: Callable[[], object]) -> Iterator[None]:
    """Call ``action`` before an immediate exit inside the block, to end what would outlive this process."""
    actions = _heeds[0].actions if _heeds else []
    actions.append(action)
    try:
        yield
    finally:
        actions.remove(action)


@contextmanager
def committing() -> Iterator[None]:
    """Say inside the block that committed revisions are safe."""
    for heed in _heeds:
        heed.line = COMMITTING
    try:
        yield
    finally:
        for heed in _heeds:
            heed.line = heed.line if heed.number else LINE  # a signal that ends the block is answered from it


def _unraisable(error: "sys.UnraisableHookArgs") -> None:
    """Report exceptions in finalizers and callbacks, except ``Stopped``, which is raised again."""
    if not isinstance(error.exc_value, Stopped):
        sys.__unraisablehook__(error)


def _leaves(error: BaseException | None) -> bool:
    """Return True if a handled exception leaves the program, or follows from one that does."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if not isinstance(error, Exception | GeneratorExit):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _handled_by(thread: int) -> BaseException | None:
    """Exception that a thread is handling, or None."""
    found: object = sys._current_exceptions().get(thread)
    value = found[1] if isinstance(found, tuple) else found  # a tuple of three parts in Python 3.11
    return value if isinstance(value, BaseException) else None


def _say(line: str) -> None:
    """Write a line to standard error without taking a lock, below a spinner or typed text."""
    with suppress(OSError):
        os.write(2, (b"\n" if os.isatty(2) else b"") + line.encode() + b"\n")
