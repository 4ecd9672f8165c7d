"""One worker process, as its run sees it: start, exchange of messages without waiting, and end.

Processes come from a fork server, which has no threads and ends with its run, or are started by another interpreter.
They hash texts alike in every run, so that a simulator may iterate over sets. Messages are lines of JSON.
"""

import os
import pickle
from collections.abc import Mapping
from contextlib import suppress
from json import dumps
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerProcess
from socket import MSG_PEEK, SHUT_WR, socket, socketpair
from tempfile import gettempdir
from threading import Lock
from typing import Any

from coevo.envs.stateful.interface import Simulator
from coevo.envs.stateful.interpreter import InterpreterProcess
from coevo.envs.stateful.simulator_worker import serve
from coevo.utilities.errors import CoevoError

ENDING = 6.0
"""Seconds that the guards of a process have to end it, and all that it has started."""
LONGEST_FOLDER = 70
"""Most bytes of the path of a folder for sockets, whose own paths may have about a hundred."""
CHUNK = 1 << 16
"""Most bytes of a read."""


class WorkerProcess:
    """A worker process with live episodes; it and all that it starts end with this process, however that ends.

    Attributes:
        number: number of the process, in the order of their starts.
        episodes: number of its live episodes.
        ended: numbers of episodes to close.
        serving: held by the thread that it serves.

    Raises:
        CoevoError: the simulator cannot be pickled, or no process can be started.
    """

    def __init__(self, simulator: Simulator, number: int, python: str | None = None) -> None:
        self.number = number
        self.episodes = 0
        self.ended: list[int] = []
        self.serving = Lock()
        self._unsent, self._heard, self._answered = b"", b"", False
        self._process: ForkServerProcess | InterpreterProcess
        try:
            image = pickled(simulator)
            self._socket, self._process = _started(image) if python is None else _started_by(python, image)
        except (OSError, EOFError) as error:
            raise CoevoError(f"the environment cannot be sent to worker processes: {error}: open in `open`") from error

    def fileno(self) -> int:
        """Descriptor of the connection."""
        return self._socket.fileno()

    @property
    def sending(self) -> bool:
        """True while a part of the request is not sent."""
        return bool(self._unsent)

    def ask(self, request: Mapping[str, Any]) -> None:
        """Begin a request; ``advance`` sends it, and receives its answer."""
        self._unsent = dumps(request).encode() + b"\n"
        self._heard = b""

    def advance(self, most: int) -> bytes | None:
        """Send and receive what can be without waiting; return the answer once it is complete.

        Raises:
            EOFError: the process has ended.
            ValueError: the answer has more than ``most`` bytes.
        """
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :] if self._unsent else b""
            part = self._socket.recv(CHUNK)
        except BlockingIOError:
            return None
        except ConnectionError as error:
            raise EOFError from error
        if not part:
            raise EOFError
        self._heard += part
        if len(self._heard) > most:
            raise ValueError
        self._answered = part.endswith(b"\n")
        return self._heard[:-1] if self._answered else None

    def ended_since_answer(self) -> bool:
        """Return True if the process has ended after an answer, or has said more, so that no request is to blame."""
        try:
            if self._answered:
                self._socket.recv(1, MSG_PEEK)
            return self._answered
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    def finish(self) -> None:
        """Let the process close its episodes and end by itself; it gets no further request."""
        with suppress(OSError):
            self._socket.shutdown(SHUT_WR)

    def end(self, grace: float = 0.0) -> int | None:
        """End the process after ``grace`` seconds at the latest, and all that it has started; return its exit code."""
        self.finish()
        self._process.join(grace)
        for force in (self._process.terminate, self._process.kill):
            if self._process.exitcode is None:
                force()
                self._process.join(ENDING)
        self._socket.close()
        return self._process.exitcode


def pickled(simulator: Simulator) -> bytes:
    """A simulator, to be sent to workers.

    Raises:
        CoevoError: it cannot be pickled.
    """
    try:
        return pickle.dumps(simulator)
    except (TypeError, AttributeError, OSError, EOFError, pickle.PicklingError) as error:
        raise CoevoError(f"the environment cannot be sent to worker processes: {error}: open in `open`") from error


def _started(simulator: bytes) -> tuple[socket, ForkServerProcess]:
    """Start a process; a second time where the fork server ended meanwhile."""
    for last in (False, True):
        ours, theirs = socketpair()
        context = get_context("forkserver")
        arguments = (simulator, theirs, os.getpid())
        process = context.Process(target=serve, args=arguments, daemon=True, name="coevo-simulator")
        try:
            with theirs:
                _start_server()
                process.start()
        except (EOFError, ConnectionError):
            ours.close()
            if last:
                raise
            continue
        ours.setblocking(False)
        return ours, process
    raise AssertionError


def _started_by(python: str, simulator: bytes) -> tuple[socket, InterpreterProcess]:
    """Start a process of another interpreter.

    Raises:
        CoevoError: it cannot be started.
    """
    ours, theirs = socketpair()
    try:
        with theirs:
            process = InterpreterProcess(python, simulator, theirs)
    except OSError as error:
        ours.close()
        raise CoevoError(f"env.python={python}: {error.strerror}: name a Python interpreter") from None
    ours.setblocking(False)
    return ours, process


def _start_server() -> None:
    """Start the fork server of this process unless it runs; its children hash texts alike.

    Raises:
        CoevoError: the path of its socket would be too long for the system.
    """
    folder = os.fsencode(gettempdir())
    if len(folder) > LONGEST_FOLDER:
        raise CoevoError(
            f"TMPDIR={os.fsdecode(folder)} has {len(folder)} bytes, and the sockets of worker processes there may have "
            f"{LONGEST_FOLDER}: set TMPDIR to a shorter path"
        )
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        get_context("forkserver").set_forkserver_preload([serve.__module__])
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONHASHSEED"]
        if before is not None:
            os.environ["PYTHONHASHSEED"] = before
