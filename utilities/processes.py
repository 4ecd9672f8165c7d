"""Processes that serve on a port or speak over pipes: a free port, the start, the wait, and the end.

In the lowest room, since models (vLLM, the trainer) and flows (Prefect, MLflow, packages) start processes. No
supervisor such as supervisord or systemd does it: a process here starts on demand, and most end with what started them.
Actors on the nodes of a cluster (``coevo.utilities.cluster``) start theirs in the same way.
"""

import os
import select
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
STOP_TIMEOUT_S = 10.0
"""Seconds that a process group has to end after a signal."""
UTF8 = {"PYTHONUTF8": "1"}
"""Variable of a Python process that reads and writes files as UTF-8 in every locale."""
ANSWER_TIMEOUT_S = 5.0
"""Seconds that a server has to answer a look."""
POLL_INTERVAL_S = 0.1
"""Seconds between two looks."""
CHUNK = 65536
"""Most bytes of a read."""
MAX_HEAD_BYTES = 1 << 18
"""Most bytes of the head of a response that are read."""


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
        replies: True for a pipe as its standard output, which ``read`` reads; the log takes its errors then.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    directory: str | Path | None = None
    append: bool = False
    leash: bool = False
    replies: bool = False


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources that a process takes of its node; this machine has what it has, and counts none.

    Attributes:
        cpus: CPU cores.
        gpus: GPUs.
        resource: custom resource of the nodes that may have it; empty for any.
    """

    cpus: float = 1.0
    gpus: float = 0.0
    resource: str = ""


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
                stdout=subprocess.PIPE if launch.replies else output,
                stderr=output,
                bufsize=0,
                env=launch.environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id, and id of its process group."""
        return self._process.pid

    def write(self, line: bytes) -> None:
        """Write to its leash. Raises ``BrokenPipeError`` if it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(line)

    def read(self, seconds: float) -> bytes | None:
        """Part of its replies; None if it writes nothing in that time, and ``b""`` at its end."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return None
        return os.read(self._process.stdout.fileno(), CHUNK)

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
        if self._process.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill it if it runs, wait for its end, and close its pipes."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


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

    The server is on this machine, whose ports a proxy does not reach. A redirection, which may lead anywhere, is no
    answer, and neither is one whose head is not complete in time.
    """
    try:
        response = HTTPResponse(_ResponseHead(_head_of(url)))  # type: ignore[arg-type]
        response.begin()
        return response.status == 200
    except (OSError, HTTPException):
        return False


class _ResponseHead:
    """Stands for a connection, from which the beginning of a response has been read."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, _: str) -> BytesIO:
        """The content as a file."""
        return BytesIO(self._content)


def _head_of(url: str) -> bytes:
    """Answer of a server to a GET, up to the first empty line. Raises ``OSError``: it did not come in time."""
    give_up, heard, there = time.monotonic() + ANSWER_TIMEOUT_S, b"", urlsplit(url)
    request = f"GET {there.path or '/'} HTTP/1.1\r\nHost: {there.netloc}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((there.hostname or LOOPBACK, there.port or 80), ANSWER_TIMEOUT_S) as connection:
        connection.sendall(request.encode())
        while b"\r\n\r\n" not in heard and len(heard) < MAX_HEAD_BYTES:
            connection.settimeout(max(0.001, give_up - time.monotonic()))
            part = connection.recv(CHUNK)
            if not part:
                break
            heard += part
    return heard


def free_port(port: int = 0, host: str = LOOPBACK) -> int:
    """The port, or any free one for 0.

    Raises:
        OSError: the port is taken, or the host is not of this machine.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])
