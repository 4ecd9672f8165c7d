"""Servers that outlive the command that started them, one of a name in a workspace.

Each runs on a free loopback port in a session of its own and is recorded in ``servers.json``. It starts under a lock of
its name, so that two commands starting side by side share it. A record is trusted where its process is the one that was
started and it answers; any other is cleared.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from filelock import FileLock

from configs.errors import CoevoError
from tasks import telemetry

STARTUP = 120.0
"""Seconds after which a server that does not answer is given up."""
CLOSING = 2.0
"""Seconds that the threads of a killed process have to close its port after it has gone."""


class ServerError(CoevoError):
    """A server did not start: names its log."""


@dataclass(frozen=True)
class Server:
    """One that was started here.

    Attributes:
        name: unique in its workspace.
        pid: its process, leader of its process group.
        started: when that process began, seconds since 1970: process ids are used again.
        port: on 127.0.0.1.
        health: path that answers 200.
    """

    name: str
    pid: int
    started: float
    port: int
    health: str

    @property
    def url(self) -> str:
        """Root of its pages."""
        return f"http://127.0.0.1:{self.port}"

    def runs(self) -> bool:
        """Whether its process is still the one that was started."""
        try:
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and self._is(process)
        except psutil.NoSuchProcess:
            return False

    def _is(self, process: psutil.Process) -> bool:
        """By its command, too, which ends with the port: when the clock is set, all processes began at another time."""
        return bool(process.create_time() == self.started or process.cmdline()[-1:] == [str(self.port)])

    def answers(self) -> bool:
        """Whether it takes requests."""
        try:
            with urllib.request.urlopen(self.url + self.health, timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """End its process group, kindly and then not; nothing where it no longer runs."""
        for kind in (signal.SIGTERM, signal.SIGKILL):
            if not self.runs():
                return
            with suppress(ProcessLookupError):
                os.killpg(self.pid, kind)
            _wait(lambda: not self.runs(), seconds=10)


def ensure(workspace: Path, name: str, command: Sequence[str], health: str, settings: Mapping[str, str]) -> Server:
    """The workspace's server of a name, started where none is alive.

    Args:
        workspace: folder of its record and log.
        name: of the server.
        command: a module and its arguments, run by this Python; the port is appended.
        health: path that answers 200 once it takes requests.
        settings: environment variables besides our own; ``{port}`` in a value becomes the port.

    Raises:
        ServerError: it did not start.
    """
    workspace.mkdir(parents=True, exist_ok=True)
    with _starting(workspace, name):
        known = _read(workspace).get(name)
        if known is not None:
            if known.runs() and known.answers():
                return known
            known.stop()
        log = workspace / f"{name}.log"
        server = _start(log, name, command, health, settings, _port_like(known))
        try:
            _record(workspace, server)  # before it answers: a command killed meanwhile leaves no stray
        except OSError:
            server.stop()
            raise
        _wait(lambda: server.answers() or not server.runs(), STARTUP)
        if server.answers():
            return server
        server.stop()
        raise ServerError(f"the {name} server did not start on port {server.port}: see {log}, then try again")


def recorded(workspace: Path) -> list[Server]:
    """The servers that were started for a workspace, whether or not they still run."""
    return list(_read(workspace).values())


def down(workspace: Path) -> list[str]:
    """Stop the servers of a workspace; returns the names of those that ran."""
    if not workspace.is_dir():
        return []
    with ExitStack() as starting:
        for name in sorted(_read(workspace)):
            starting.enter_context(_starting(workspace, name))
        with _records(workspace):
            alive = [server for server in _read(workspace).values() if server.runs()]
            for server in alive:
                server.stop()
            _write(workspace, {})
    return [server.name for server in alive]


def _start(log: Path, name: str, command: Sequence[str], health: str, settings: Mapping[str, str], port: int) -> Server:
    environment = {name: value.replace("{port}", str(port)) for name, value in settings.items()}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", *command, str(port)],
            cwd=sys.prefix,  # uvicorn imports from where it starts, whatever -P says
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **telemetry.OFF, **environment},
        )
    return Server(name, process.pid, psutil.Process(process.pid).create_time(), port, health)


def _port_like(known: Server | None) -> int:
    """That of the server before, where nobody has taken it since: its clients and open pages find the new one."""
    if known is None:
        return _free(0)
    _wait(lambda: bool(_free(known.port)), CLOSING)
    return _free(known.port) or _free(0)


def _free(port: int) -> int:
    """The port, and one that nobody has for 0; 0 where somebody has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
        return int(probe.getsockname()[1])


def _wait(done: Callable[[], bool], seconds: float) -> None:
    give_up = time.monotonic() + seconds
    while not done() and time.monotonic() < give_up:
        time.sleep(0.1)


def _starting(workspace: Path, name: str) -> FileLock:
    """Held while a server starts; those of other names start beside it."""
    return FileLock(workspace / f"{name}-server.lock")


def _records(workspace: Path) -> FileLock:
    return FileLock(workspace / "servers.lock")


def _record(workspace: Path, server: Server) -> None:
    with _records(workspace):
        _write(workspace, _read(workspace) | {server.name: server})


def _read(workspace: Path) -> dict[str, Server]:
    path = workspace / "servers.json"
    records = json.loads(path.read_text()) if path.is_file() else []
    return {record["name"]: Server(**record) for record in records}


def _write(workspace: Path, servers: Mapping[str, Server]) -> None:
    part = workspace / "servers.json.part"
    part.write_text(json.dumps([asdict(server) for server in servers.values()], indent=1))
    part.replace(workspace / "servers.json")
