"""Worker that runs the scheduled sessions of its workspace when they are due, each in its own process."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from logging import LogRecord
from pathlib import Path
from types import FrameType

import psutil
from httpx import TransportError
from prefect.logging.handlers import PrefectConsoleHandler
from websockets.exceptions import WebSocketException

from coevo.flows.console.interrupt import at_once
from coevo.flows.console.options import VARIABLE
from coevo.flows.console.output import line, result
from coevo.flows.servers.daemon import recorded, settled
from coevo.flows.servers.server_process import Server, ServerError
from coevo.flows.servers.servers import use_prefect
from coevo.lineage.workspace import Workspace
from coevo.utilities.processes import UTF8

LOST = (ConnectionError, TransportError, WebSocketException)
"""Exceptions that clients raise once their server is dead."""


class Console(PrefectConsoleHandler):
    """Prefect's console handler, with short messages about a lost server."""

    def emit(self, record: LogRecord) -> None:
        """Print a record; for a lost server, without its traceback."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, LOST):
            record = copy(record)
            record.msg, record.args, record.exc_info = f"{record.getMessage()} ({error})", (), None
        super().emit(record)


SETTINGS = {
    **UTF8,
    "PREFECT_LOGGING_HANDLERS_CONSOLE_CLASS": "coevo.flows.sessions.session_worker.Console",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
    "PREFECT_LOGGING_TO_API_ENABLED": "true",
}
"""Settings of sessions, which log to Prefect's pages and to the worker's terminal."""

STOP_TIMEOUT_S = 30.0
"""Seconds for the worker and its session to stop before they are killed; committed revisions are safe either way."""
POLL_INTERVAL_S = 0.5
"""Seconds between two checks of the server process, short so that a stopped server is noticed soon."""
MIN_CLOCK_JUMP_S = 60.0
"""Least seconds that count as a jump of the clock."""
CONTINUOUS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Clock that nobody sets; on Linux it also runs while the machine sleeps."""
ASK = 10.0
"""Seconds between two requests to the server."""


def work(workspace: Workspace, pool: str, as_json: bool = False) -> int:
    """Run a worker of a pool until interrupted, and return its exit code.

    As JSON, standard output gets one document at the start; what sessions print goes to standard error.

    Raises:
        ServerError: the workspace's server is gone, and cannot be restarted at its address.
    """
    named = bool(os.environ.get("PREFECT_API_URL"))
    url = use_prefect(workspace.root)
    from coevo.flows.history.run_summaries import faults, run_summaries
    from coevo.flows.sessions.schedules import POOL, prepare_server

    prepare_server(workspace, pool)
    pages = f"Prefect is at {url.removesuffix('/api')}" if named else "`coevo ui` shows them"
    where = f"{workspace.root}{'' if pool == POOL else f', pool {pool}'}"
    problems = faults(run_summaries(workspace))
    result(
        as_json,
        {"workspace": str(workspace.root), "pool": pool, "prefect": url.removesuffix("/api"), "problems": problems},
        f"Running scheduled sessions of {where}. {pages}. Stop with Ctrl-C.",
        *problems,
    )
    looker = Looker(workspace, url, restarts=not named)
    with runner_storage() as storage:
        variables = {**storage, VARIABLE: str(workspace.root)}
        return supervise(worker_of(pool), looker.look, variables=variables, aside=as_json)


def worker_of(pool: str) -> list[str]:
    """Command of Prefect's worker, which gets the environment and the signals of this process and ends with it."""
    return [
        sys.executable,
        "-P",
        "-m",
        "coevo.flows.servers.leash",
        "prefect",
        "worker",
        "start",
        "--pool",
        pool,
        "--type",
        "process",
        "--name",
        f"{socket.gethostname()}-{os.getpid()}",
    ]


@contextmanager
def runner_storage() -> Iterator[dict[str, str]]:
    """Variables of Prefect's worker: another ``TMPDIR`` where it cannot write into its folder there."""
    folder = Path(tempfile.gettempdir()) / "runner_storage"
    if not os.path.lexists(folder) or (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="coevo-", ignore_cleanup_errors=True) as own:
        yield {"TMPDIR": own}


class Looker:
    """Watcher of a worker's server, and of the clock that it plans by.

    Args:
        workspace: of the server.
        url: URL of its API.
        restarts: whether the server is the workspace's own, which is started again where it is needed.
    """

    def __init__(self, workspace: Workspace, url: str, restarts: bool = True) -> None:
        self._workspace = workspace
        self._url = url
        self._restarts = restarts
        self._asked = time.monotonic()
        self._offset = _clock_offset()

    def look(self) -> None:
        """Restart a dead server before Prefect's worker and its sessions give up on it.

        Raises:
            ServerError: the server was stopped, did not start, or lost its port to another program.
        """
        jump = _clock_offset() - self._offset
        if abs(jump) > MIN_CLOCK_JUMP_S:
            self._offset += jump
            self._plan_anew(jump)
        elif not self._restarts:
            return
        elif not self._server().runs():
            line(f"The Prefect server at {self._url} has died: starting another.")
            self._restart()
        elif time.monotonic() - self._asked > ASK:
            _free_sessions(self._workspace)
            self._asked = time.monotonic()

    def _plan_anew(self, jump: float) -> None:
        """Plan all sessions by the new clock; a server sleeps until times of the old one, and starts again."""
        from httpx import HTTPError
        from prefect.exceptions import PrefectException

        from coevo.flows.sessions.schedules import plan_anew

        line(f"The clock was set {'back' if jump < 0 else 'ahead'} by {abs(jump) / 60:.0f} min: planning all sessions.")
        if self._restarts:
            self._server().stop()
            self._restart()
        try:
            plan_anew(self._workspace)
        except (HTTPError, PrefectException) as error:
            line(f"The sessions were not planned anew ({' '.join(str(error).split())}): start `coevo worker` again.")

    def _server(self) -> Server:
        server = {server.name: server for server in recorded(self._workspace.root)}.get("prefect")
        if server is not None and not server.runs():
            server = settled(self._workspace.root, "prefect")  # another command may be stopping it
        if server is None:
            again = "start `coevo worker` again to continue"
            raise ServerError(f"the Prefect server at {self._url} was stopped: {again}")
        return server

    def _restart(self) -> None:
        del os.environ["PREFECT_API_URL"]
        new = use_prefect(self._workspace.root)
        if new != self._url:
            raise ServerError(f"the Prefect server at {self._url} had to move to {new}: start `coevo worker` again")


def _clock_offset() -> float:
    """Seconds between the clock and the time that only runs on; a change is a jump of the clock."""
    return time.time() - time.clock_gettime(CONTINUOUS)


def _free_sessions(workspace: Workspace) -> None:
    from httpx import HTTPError

    from coevo.flows.servers.stale import mark_unbegun_sessions

    with suppress(HTTPError):  # it is busy or has just died; the next check finds out
        mark_unbegun_sessions(workspace)


def supervise(
    command: Sequence[str],
    look: Callable[[], None],
    grace: float = STOP_TIMEOUT_S,
    variables: Mapping[str, str] | None = None,
    aside: bool = False,
) -> int:
    """Run a command, call ``look`` regularly, and forward interrupts to the command.

    ``aside`` sends its standard output to standard error.

    On an interrupt, Prefect's worker waits for its session, which waits for the servers that it publishes to: this may
    take minutes. Processes left after ``grace`` seconds are therefore killed. If ``look`` raises, no server is left and
    all processes are killed immediately: each would log long errors.

    Raises:
        ServerError: raised by ``look``.
    """
    child = subprocess.Popen(
        command,
        env={**os.environ, **SETTINGS, **(variables or {})},
        process_group=0,
        stdin=subprocess.PIPE,
        stdout=2 if aside else None,
    )
    family = {psutil.Process(child.pid)}
    with at_once(lambda: _end(family | _below(child.pid), time.monotonic())):
        return _attend(child, family, look, grace)


def _attend(
    child: "subprocess.Popen[bytes]", family: set[psutil.Process], look: Callable[[], None], grace: float
) -> int:
    deadlines: list[float] = []

    def forward(number: int, _: FrameType | None) -> None:
        # Before the signal: the children of a process that has ended cannot be found.
        family.update(_below(child.pid))
        deadlines.append(time.monotonic() + grace)
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    looked = time.monotonic()
    try:
        while child.poll() is None and not (deadlines and time.monotonic() > deadlines[0]):
            time.sleep(0.2)
            if not deadlines and time.monotonic() - looked > POLL_INTERVAL_S:
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
    """Wait for processes until a deadline, and kill the rest; psutil never kills a new process with a reused id."""
    _, left = psutil.wait_procs(processes, timeout=max(0.0, deadline - time.monotonic()))
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
