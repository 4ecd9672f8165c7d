"""Watch of the Prefect server of a run, which ends the run soon after its server.

Prefect itself reports a dead server late: tasks run without it, a request is repeated for half a minute, a queued event
for nine seconds, and the process waits for all of them, some at its end. Therefore a separate thread ends the run
wherever it is. Nothing is lost by that, since the git commit is the only commit point.
"""

import atexit
import ctypes
import os
import signal
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from http.client import HTTPException
from time import monotonic, sleep
from types import FrameType
from urllib.error import HTTPError, URLError

from coevo.flows.servers.servers import CLIENT, drop_events, gone, prefect_in_use
from coevo.utilities.errors import CoevoError

POLL_INTERVAL_S = 2.0
"""Seconds between two checks of the server."""
CHECK_TIMEOUT_S = 10.0
"""Timeout of a check, in seconds."""
REFUSED = 6.0
"""Seconds of refused connections after which the server counts as dead."""
SILENT = 300.0
"""Seconds without an answer after which a listening server counts as dead; a busy machine is slow."""
ENDING = 12.0
"""Seconds for the process to end by itself once the server is dead."""
LEAVING = 2.0
"""Seconds of these for Python's shutdown after the main thread has ended."""
SIGNAL = signal.SIGURG
"""Signal that interrupts the main thread; a process without a handler ignores it."""


class ServerAnswer(Enum):
    """Result of a check: any answer, no answer in time, or no listener."""

    ANSWERED = "answered"
    SILENT = "silent"
    REFUSED = "refused"


class Pulse:
    """Distinction of a dead server from a slow one."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._answered = clock()
        self._listened = clock()

    def is_dead(self, answer: ServerAnswer) -> bool:
        """Record a check; return True if the server is dead."""
        now = self._clock()
        if answer is ServerAnswer.ANSWERED:
            self._answered = now
        if answer is not ServerAnswer.REFUSED:
            self._listened = now
        return now - self._listened > REFUSED or now - self._answered > SILENT


def look(url: str) -> ServerAnswer:
    """Check the Prefect server at an API URL once."""
    try:
        urllib.request.urlopen(f"{url}/health", timeout=CHECK_TIMEOUT_S).close()
    except HTTPError:
        return ServerAnswer.ANSWERED
    except OSError as error:
        reason = error.reason if isinstance(error, URLError) else error
        return ServerAnswer.REFUSED if isinstance(reason, ConnectionError) else ServerAnswer.SILENT
    except HTTPException:  # an answer that is not HTTP
        return ServerAnswer.ANSWERED
    return ServerAnswer.ANSWERED


@contextmanager
def watching(then: str, alone: bool) -> Iterator[None]:
    """Call Prefect within, as in ``prefect_in_use``; code within is interrupted once the server is dead.

    Args:
        then: remedy, for the error's line.
        alone: whether the process does nothing else. It then ends ``ENDING`` seconds later at the latest, with exit
            code 2, even if a part of it still waits for the server.

    Raises:
        ServerError: the server is dead, or answers with errors only.
    """
    watch = _Watch(os.environ["PREFECT_API_URL"], then, alone)
    try:
        try:
            watch.start()
            with prefect_in_use(then):
                yield
                _send_events()
        finally:
            watch.stop()
    except (KeyboardInterrupt, SystemExit, CoevoError):
        raise
    except BaseException as error:
        if not watch.dead:
            raise
        drop_events()
        raise gone(then) from error


class _Gone(BaseException):
    """Raised in the watched thread; no ``except Exception`` catches it."""


class _Watch:
    """Thread that checks the server, and interrupts the thread that started it."""

    def __init__(self, url: str, then: str, alone: bool) -> None:
        self.dead = False
        self._url = url
        self._then = then
        self._alone = alone
        self._watched = threading.current_thread()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._handler = signal.getsignal(SIGNAL)

    def start(self) -> None:
        if self._watched is threading.main_thread():
            signal.signal(SIGNAL, self._interrupted)
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def stop(self) -> None:
        with self._lock:
            self._over.set()
        if self._watched is threading.main_thread():
            signal.signal(SIGNAL, self._handler)
        if self.dead and not self._alone:
            _repeat(int(CLIENT["PREFECT_CLIENT_MAX_RETRIES"]))

    def _watch(self) -> None:
        pulse = Pulse()
        while not self._over.wait(POLL_INTERVAL_S):
            if pulse.is_dead(look(self._url)):
                self._end()
                return

    def _end(self) -> None:
        with self._lock:
            if self._over.is_set():
                return
            self.dead = True
            _repeat(0)
            self._interrupt()
        if self._alone:
            self._end_process()

    def _interrupt(self) -> None:
        assert self._watched.ident is not None
        if self._watched is threading.main_thread():
            signal.pthread_kill(self._watched.ident, SIGNAL)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._watched.ident), ctypes.py_object(_Gone))

    def _interrupted(self, _: int, __: FrameType | None) -> None:
        if not self._over.is_set():
            raise _Gone

    def _end_process(self) -> None:
        atexit.register(_leave)  # before the interpreter's shutdown, during which no thread runs
        give_up = monotonic() + ENDING
        while threading.main_thread().is_alive() and monotonic() < give_up:
            sleep(0.1)
        if threading.main_thread().is_alive():
            sys.stderr.write(f"coevo: {gone(self._then)}\n")
        else:
            sleep(LEAVING)
        _leave()


def _leave() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(2)


def _send_events() -> None:
    """Wait until the server has received all events: here, since nothing can interrupt it at the process's end."""
    from prefect.events.worker import EventsWorker

    EventsWorker.drain_all()


def _repeat(times: int) -> None:
    """Set the number of retries of Prefect's clients, current requests included."""
    from prefect.settings import get_current_settings

    get_current_settings().client.max_retries = times
