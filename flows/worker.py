"""The worker: takes nights from the server of its workspace when they fall due, and plays each in a process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

import psutil

from flows.daemon import recorded, settled
from flows.interrupt import at_once
from flows.output import line
from flows.server import ServerError
from flows.servers import use_prefect
from lineage.workspace import Workspace

SETTINGS = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_CLASS": "flows.worker_console.Console",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
    "PREFECT_LOGGING_TO_API_ENABLED": "true",
}
"""What a night says is read on Prefect's pages and in the worker's terminal."""

GRACE = 30.0
"""Seconds that the worker and its night have to end by themselves; what was committed is safe all the same."""
LOOK = 0.5
"""Seconds between two looks after the server: it is soon known that somebody has stopped it."""
ASK = 10.0
"""Seconds between two questions to the server."""


def work(place: Workspace) -> int:
    """Be the worker until interrupted; returns its exit code.

    Raises:
        ServerError: the workspace's server has gone, and cannot be had again at the address that everybody knows.
    """
    named = bool(os.environ.get("PREFECT_API_URL"))
    url = use_prefect(place.root)
    from flows.schedules import POOL, prepare_server
    from flows.standing import faults, standings

    prepare_server(place)
    pages = f"Prefect is at {url.removesuffix('/api')}" if named else "`coevo ui` shows them"
    line(f"Nights of {place.root} begin here. {pages}. Stop with Ctrl-C.")
    for fault in faults(standings(place)):
        line(fault)
    return supervise(worker_of(POOL), (lambda: None) if named else Looker(place, url).look)


def worker_of(pool: str) -> list[str]:
    """Prefect's worker as a command, which gets our environment and our signals, and ends with us."""
    return [
        sys.executable,
        "-P",
        "-m",
        "flows.leash",
        "prefect",
        "worker",
        "start",
        "--pool",
        pool,
        "--type",
        "process",
    ]


class Looker:
    """Looks after the server of a worker.

    Args:
        place: whose server it is.
        url: its API.
    """

    def __init__(self, place: Workspace, url: str) -> None:
        self._place = place
        self._url = url
        self._asked = time.monotonic()

    def look(self) -> None:
        """Start the server again where it has died, before Prefect's worker and its nights give it up.

        Raises:
            ServerError: somebody has stopped it, it did not start, or another program has taken its port.
        """
        server = {server.name: server for server in recorded(self._place.root)}.get("prefect")
        if server is not None and not server.runs():
            server = settled(self._place.root, "prefect")  # somebody may be about to stop it
        if server is None:
            again = "start `coevo worker` again for nights to go on"
            raise ServerError(f"the Prefect server at {self._url} was stopped: {again}")
        if not server.runs():
            self._restart()
        elif time.monotonic() - self._asked > ASK:
            _free_nights(self._place)
            self._asked = time.monotonic()

    def _restart(self) -> None:
        line(f"The Prefect server at {self._url} has gone: starting another.")
        del os.environ["PREFECT_API_URL"]
        new = use_prefect(self._place.root)
        if new != self._url:
            raise ServerError(f"the Prefect server at {self._url} had to move to {new}: start `coevo worker` again")


def _free_nights(place: Workspace) -> None:
    from httpx import HTTPError

    from flows.stale import mark_unbegun_nights

    with suppress(HTTPError):  # it is busy, or has just died: the next look tells
        mark_unbegun_nights(place)


def supervise(command: Sequence[str], look: Callable[[], None], grace: float = GRACE) -> int:
    """Run a command, with a ``look`` now and then, and pass on what interrupts us.

    Prefect's worker waits for its night, which waits for whoever it publishes to: that may take minutes. So what of it
    is left ``grace`` seconds later is ended; all of it at once where ``look`` finds that there is no server to end
    with, about which each would complain at length.

    Raises:
        ServerError: that of ``look``.
    """
    child = subprocess.Popen(command, env={**os.environ, **SETTINGS}, process_group=0, stdin=subprocess.PIPE)
    family = {psutil.Process(child.pid)}
    with at_once(lambda: _end(family | _below(child.pid), time.monotonic())):
        return _attend(child, family, look, grace)


def _attend(
    child: "subprocess.Popen[bytes]", family: set[psutil.Process], look: Callable[[], None], grace: float
) -> int:
    deadlines: list[float] = []

    def forward(number: int, _: FrameType | None) -> None:
        # Now, since afterwards nobody knows whose they were.
        family.update(_below(child.pid))
        deadlines.append(time.monotonic() + grace)
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    looked = time.monotonic()
    try:
        while child.poll() is None and not (deadlines and time.monotonic() > deadlines[0]):
            time.sleep(0.2)
            if not deadlines and time.monotonic() - looked > LOOK:
                look()
                looked = time.monotonic()
        if deadlines:
            _end(family | _below(child.pid), deadlines[0])
        return child.wait()
    except ServerError:
        _end(family | _below(child.pid), time.monotonic())
        raise
    finally:
        if child.poll() is None:
            forward(signal.SIGTERM, None)
            _end(family, deadlines[-1])
        for number, handler in before.items():
            signal.signal(number, handler)


def _below(pid: int) -> set[psutil.Process]:
    try:
        return set(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return set()


def _end(processes: set[psutil.Process], deadline: float) -> None:
    """Wait for them, and kill what is left; none is mistaken for another one that has its number by now."""
    _, left = psutil.wait_procs(processes, timeout=max(0.0, deadline - time.monotonic()))
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
