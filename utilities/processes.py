"""Processes that serve on a port of this machine: a free port, the start, the wait, and the end.

In the lowest room, since models (vLLM) and flows (Prefect, MLflow, packages) start servers. No supervisor such as
supervisord or systemd does it: a server here starts on demand, on any free port, and most end with what started them.
The trainer's processes (``coevo.models.trainer.trainer_launch``) and a session's worker
(``coevo.flows.sessions.session_worker``) serve no port: one speaks over pipes and is killed at once, the other has
signals passed on to a whole family.
"""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

LOOPBACK = "127.0.0.1"
STOP_TIMEOUT_S = 10.0
"""Seconds that a process group has to end after a signal."""
UTF8 = {"PYTHONUTF8": "1"}
"""Variable of a Python process that reads and writes files as UTF-8 in every locale."""
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
POLL_INTERVAL_S = 0.1
"""Seconds between two looks."""


class _SameAddress(urllib.request.HTTPRedirectHandler):
    """Follows no redirection, which would send a key to another address: the response is an error then."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


def opener(direct: bool) -> urllib.request.OpenerDirector:
    """Opener that follows no redirection; ``direct`` passes the proxies of the environment by."""
    return urllib.request.build_opener(_SameAddress, *([urllib.request.ProxyHandler({})] if direct else []))


@dataclass(frozen=True, slots=True)
class Launch:
    """A command to start.

    Attributes:
        command: program and arguments.
        environment: all its variables.
        log: file that takes its output.
        directory: where it starts; None for that of this process.
        append: True to keep what the log has.
        leash: True to give the command a pipe as its standard input, which ends with this process, whatever ends that.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    directory: str | Path | None = None
    append: bool = False
    leash: bool = False


class ServerProcess:
    """A child process that leads a session and process group of its own, so that Ctrl-C does not reach it.

    Args:
        launch: how to start it.
    """

    def __init__(self, launch: Launch) -> None:
        with launch.log.open("ab" if launch.append else "wb") as output:
            self._process = subprocess.Popen(
                launch.command,
                cwd=launch.directory,
                stdin=subprocess.PIPE if launch.leash else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=launch.environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id, and id of its process group."""
        return self._process.pid

    def runs(self) -> bool:
        """Return True if the process is alive; it need not answer."""
        return self._process.poll() is None

    def status(self) -> int:
        """Wait for the end of the process; its exit status, negative for a signal."""
        return self._process.wait()

    def stop(self) -> None:
        """End the process and its children: by its leash, or by signals to its group."""
        if self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
        else:
            end_group(self.pid, self.runs)

    def kill(self) -> None:
        """End the process and its children at once, without a wait."""
        os.killpg(self.pid, signal.SIGKILL)


def end_group(pid: int, runs: Callable[[], bool]) -> None:
    """End a process group with SIGTERM, and after ``STOP_TIMEOUT_S`` with SIGKILL.

    Args:
        pid: leader of the group.
        runs: True while the leader is alive and the one that is meant; nothing is signalled otherwise.
    """
    for kind in (signal.SIGTERM, signal.SIGKILL):
        if not runs():
            return
        with suppress(ProcessLookupError):
            os.killpg(pid, kind)
        wait(lambda: not runs(), STOP_TIMEOUT_S)


def wait(done: Callable[[], bool], seconds: float) -> None:
    """Wait until something is done, or the time is over."""
    give_up = time.monotonic() + seconds
    while not done() and time.monotonic() < give_up:
        time.sleep(POLL_INTERVAL_S)


def wait_ready(ready: Callable[[], bool], runs: Callable[[], bool], seconds: float) -> bool:
    """Wait until a server is ready, has ended, or the time is over; returns whether it is ready."""
    give_up = time.monotonic() + seconds
    while not ready():
        if not runs() or time.monotonic() > give_up:
            return False
        time.sleep(POLL_INTERVAL_S)
    return True


def answers(url: str) -> bool:
    """Return True if a GET of the URL is answered with status 200 within 5 seconds; not by what speaks no HTTP.

    The server is on this machine, whose ports a proxy does not reach.
    """
    try:
        with DIRECT.open(url, timeout=5) as response:
            return bool(response.status == 200)
    except (OSError, HTTPException):
        return False


def free_port(port: int = 0, host: str = LOOPBACK) -> int:
    """The port, or any free one for 0.

    Raises:
        OSError: the port is taken, or the host is not of this machine.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])
