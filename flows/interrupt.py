"""Ctrl-C and SIGTERM: one line at once, an orderly end, and with a second Ctrl-C an end at once.

Python delivers a signal in the main thread, between two of its instructions: C code of a library delays it, and a
library that catches everything swallows what it raises. So a thread of its own hears each signal through Python's
wakeup descriptor. That thread writes the line, interrupts the main thread again as long as it does not leave, and ends
the process where that does not help, or at a second Ctrl-C. An end at any moment is safe: what is committed stays.
"""

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
LINE = "stopping: what is committed is safe; Ctrl-C again to stop now"
BOUNCE = 0.2
"""Seconds within which a second Ctrl-C is the first one again, which a program above this one has passed on."""
LOOK = 0.3
"""Seconds between two looks whether the main thread leaves; two in a row that it does not, and it is interrupted."""
TRIES = 3
"""Times that what is raised in the main thread may be swallowed."""
CLOSED = 0
"""Byte that ends the thread; no signal has this number."""


class Stopped(KeyboardInterrupt):
    """Raised in the main thread once the user, or the system, has asked for the end."""


class _Heed:
    """Signals of this process, from the first command to its end."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.said = threading.Event()
        self.actions: list[Callable[[], object]] = []
        self._main = threading.main_thread().ident or 0
        self._heard = 0.0
        self._ours = 0
        self._strays = 0
        self._tries = 0

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Python's handler: leave, unless that is under way."""
        self.number = self.number or number
        if not _leaves(sys.exc_info()[1]):
            raise Stopped

    def listen(self, reader: int) -> None:
        """Be the thread."""
        while True:
            waits = LOOK if self.said.is_set() else None
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
            _say(LINE)
            self.said.set()
        elif number == signal.SIGINT and time.monotonic() - self._heard > BOUNCE:
            self.end_now()

    def _look(self) -> None:
        """Interrupt the main thread again where something has swallowed what was raised in it."""
        if signal.getsignal(signal.SIGINT) != self.interrupt or _leaves(_handled_by(self._main)):
            self._strays = 0
            return
        self._strays += 1
        if self._strays > 1:
            self._again()

    def _again(self) -> None:
        if self._tries == TRIES:
            self.end_now()
        self._tries += 1
        self._strays = 0
        self._ours += 1
        signal.pthread_kill(self._main, signal.SIGINT)

    def end_now(self) -> NoReturn:
        """End the process, and what would outlive it."""
        try:
            for action in reversed(self.actions):
                action()
        finally:
            self.leave()

    def leave(self) -> NoReturn:
        """End the process; no library may hold it up any more."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it, or it is closed
                stream.flush()
        os._exit(128 + (self.number or signal.SIGINT))


_heeds: list[_Heed] = []
"""The one of this process, while a command runs."""


@contextmanager
def heeded() -> Iterator[None]:
    """Heed Ctrl-C and SIGTERM within; one that came ends the process with the block, with exit code 128 + its number.

    Within another such block, and outside of the main thread, nothing changes. A signal that is ignored stays so.
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
            if not heed.said.wait(BOUNCE):  # somebody else has taken the wakeup descriptor
                _say(LINE)
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
    """Within, an end at once calls ``action`` before: what this process started and what would outlive it."""
    actions = _heeds[0].actions if _heeds else []
    actions.append(action)
    try:
        yield
    finally:
        actions.remove(action)


def _unraisable(error: "sys.UnraisableHookArgs") -> None:
    """Say what a finalizer or callback swallows, but for what is raised again anyhow."""
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
    """The exception that a thread handles now."""
    found: object = sys._current_exceptions().get(thread)
    value = found[1] if isinstance(found, tuple) else found  # Python 3.11 has the three parts of it
    return value if isinstance(value, BaseException) else None


def _say(line: str) -> None:
    """Write to standard error past all locks, below a spinner or what is being typed."""
    with suppress(OSError):
        os.write(2, (b"\n" if os.isatty(2) else b"") + line.encode() + b"\n")
