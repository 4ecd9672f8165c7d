"""Servers that outlive the command that started them, one of a name in a workspace.

Each runs on a free loopback port in a session of its own and is recorded in ``servers.json``. It starts under
a lock of its name, so that two commands starting side by side share it. A record is trusted where its process is the
one that was started and it answers; any other is cleared.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil
from filelock import FileLock

from flows.secret import VARIABLE
from flows.server import Server, ServerError, reach_directly, wait
from flows.server_records import read_records, records_lock, write_records
from lineage.files import make_private
from tasks import telemetry

STARTUP = 120.0
"""Seconds after which a server that does not answer is given up."""
CLOSING = 2.0
"""Seconds that the threads of a killed process have to close its port after it has gone."""


def ensure(workspace: Path, name: str, command: Sequence[str], health: str, settings: Mapping[str, str]) -> Server:
    """The workspace's server of a name, started where none is alive.

    Args:
        workspace: folder of its record and log.
        name: of the server.
        command: a module and its arguments, run by this Python; the port is appended.
        health: path that answers 200 once it takes requests; a server that was started with another one is replaced.
        settings: environment variables besides our own; ``{port}`` in a value becomes the port.

    Raises:
        ServerError: it did not start, or ``servers.json`` is damaged.
    """
    reach_directly()
    make_private(workspace)
    with _starting(workspace, name):
        known = read_records(workspace).get(name)
        if known is not None:
            if known.health == health and known.runs() and known.answers():
                return known
            known.stop()
        log = workspace / f"{name}.log"
        server = _start(log, name, command, health, settings, _port_like(known))
        try:
            _record(workspace, server)  # before it answers: a command killed meanwhile leaves no stray
        except (OSError, ServerError):
            server.stop()
            raise
        wait(lambda: server.answers() or not server.runs(), STARTUP)
        if server.answers():
            return server
        server.stop()
        raise ServerError(f"the {name} server did not start on port {server.port}: see {log}, then try again")


def recorded(workspace: Path) -> list[Server]:
    """The servers that were started for a workspace, whether or not they still run.

    Raises:
        ServerError: ``servers.json`` is damaged.
    """
    return list(read_records(workspace).values())


def settled(workspace: Path, name: str) -> Server | None:
    """The record of a server once nobody starts or stops it; None where there is none.

    Raises:
        ServerError: ``servers.json`` is damaged.
    """
    with _starting(workspace, name):
        return read_records(workspace).get(name)


def down(workspace: Path) -> list[str]:
    """Stop the servers of a workspace; returns the names of those that ran.

    Raises:
        ServerError: ``servers.json`` is damaged, and none was stopped.
    """
    if not workspace.is_dir():
        return []
    with ExitStack() as starting:
        for name in sorted(read_records(workspace)):
            starting.enter_context(_starting(workspace, name))
        with records_lock(workspace):
            # Prefect's last, whose worker waits for the end of this.
            alive = [server for _, server in sorted(read_records(workspace).items()) if server.runs()]
            left = {server.name: server for server in alive}
            write_records(workspace, left)
            for server in alive:
                server.stop()
                del left[server.name]
                write_records(workspace, left)
    return [server.name for server in alive]


def _start(log: Path, name: str, command: Sequence[str], health: str, settings: Mapping[str, str], port: int) -> Server:
    environment = {name: value.replace("{port}", str(port)) for name, value in settings.items()}
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}  # for clients, not for servers
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", *command, str(port)],
            cwd=sys.prefix,  # uvicorn imports from where it starts, whatever -P says
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**inherited, **telemetry.OFF, **environment},
        )
    return Server(name, process.pid, psutil.Process(process.pid).create_time(), port, health)


def _port_like(known: Server | None) -> int:
    """That of the server before, where nobody has taken it since: its clients and open pages find the new one."""
    if known is None:
        return _free(0)
    wait(lambda: bool(_free(known.port)), CLOSING)
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


def _record(workspace: Path, server: Server) -> None:
    with records_lock(workspace):
        write_records(workspace, read_records(workspace) | {server.name: server})


def _starting(workspace: Path, name: str) -> FileLock:
    """Held while a server starts; those of other names start beside it."""
    return FileLock(workspace / f"{name}-server.lock")
