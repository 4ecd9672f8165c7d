"""Servers that outlive the command that started them, one per name in a workspace.

Each runs on a free loopback port in its own session and is recorded in ``servers.json``. It starts under a lock of its
name, so that two concurrent commands share it. A record is valid if its process is the one that was started and
answers; other records are cleared.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

import psutil
from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from coevo.configs.proxies import reach_directly
from coevo.flows.servers.server_process import Server, ServerError
from coevo.flows.servers.server_secret import VARIABLE
from coevo.lineage.atomic_files import make_private
from coevo.tasks import telemetry
from coevo.tasks.publish.reporter import in_stage
from coevo.utilities.local_http import free_port
from coevo.utilities.processes import HERE, UTF8, Launch, NotReadyError, ServerProcess, Starting, wait

STARTUP = 120.0
"""Seconds for a server to start."""
TITLES = {"prefect": "Prefect", "mlflow": "MLflow", "watch": "live page's"}
CLOSING = 2.0
"""Seconds for the threads of a killed process to close its port."""
FILE = TypeAdapter(list[Server])


def ensure(workspace: Path, name: str, command: Sequence[str], health: str, settings: Mapping[str, str]) -> Server:
    """Return the workspace's server of a name, started if none is running.

    Args:
        workspace: folder of its record and log.
        name: name of the server.
        command: a module and its arguments, run by this Python; the port is appended.
        health: path that answers 200 once the server is ready; a server started with another one is replaced.
        settings: additional environment variables; ``{port}`` in a value becomes the port.

    Raises:
        ServerError: the server did not start, or ``servers.json`` is damaged.
    """
    reach_directly()
    make_private(workspace)
    with starting_lock(workspace, name):
        known = read_records(workspace).get(name)
        if known is not None:
            if is_at(known, workspace) and known.health == health and known.runs() and known.answers():
                return known
            known.stop()
        log = workspace / f"{name}.log"
        with in_stage(f"starts the {TITLES.get(name, name)} server"):
            launch = Launch(
                ["{python}", "-P", "-m", *command, "{port}"],
                {**telemetry.OFF, **UTF8, **settings},
                log,
                directory=sys.prefix,  # uvicorn imports from where it starts, whatever -P says
                withheld=(VARIABLE,),  # for clients, not for servers
                port=_port_like(known),
            )
            process = HERE.start(launch)
            server = _recordable(name, process, health)
            try:
                _record(workspace, server)  # before it answers: a command killed meanwhile leaves no stray
            except (OSError, ServerError):
                server.stop()
                raise
            try:
                Starting(process, log).wait(server.answers, STARTUP)
            except NotReadyError as error:
                raise ServerError(
                    f"the {name} server did not start on port {server.port}: it {error}, then try again"
                ) from None
            return server


def recorded(workspace: Path) -> list[Server]:
    """Servers that were started for a workspace, running or not.

    Raises:
        ServerError: ``servers.json`` is damaged.
    """
    return list(read_records(workspace).values())


def settled(workspace: Path, name: str) -> Server | None:
    """Record of a server, read while no command starts or stops it, or None.

    Raises:
        ServerError: ``servers.json`` is damaged.
    """
    with starting_lock(workspace, name):
        return read_records(workspace).get(name)


def down(workspace: Path, prefix: str = "") -> list[str]:
    """Stop the servers of a workspace whose names begin with ``prefix``; return the names of those that were running.

    Raises:
        ServerError: ``servers.json`` is damaged; no server was stopped.
    """
    if not workspace.is_dir():
        return []
    with ExitStack() as starting:
        for name in sorted(name for name in read_records(workspace) if name.startswith(prefix)):
            starting.enter_context(starting_lock(workspace, name))
        with records_lock(workspace):
            # Prefect's last, since its worker waits for its end.
            known = sorted(read_records(workspace).items())
            alive = [server for name, server in known if name.startswith(prefix) and server.runs()]
            left = {name: server for name, server in known if server in alive or not name.startswith(prefix)}
            write_records(workspace, left)
            for server in alive:
                server.stop()
                del left[server.name]
                write_records(workspace, left)
    return [server.name for server in alive]


def _recordable(name: str, process: ServerProcess, health: str) -> Server:
    port = int(process.address.rpartition(":")[2])
    return Server(name, process.pid, psutil.Process(process.pid).create_time(), port, health)


def _port_like(known: Server | None) -> int:
    """Port of the previous server, if still free, so that clients and open pages find the new one; else a free port."""
    if known is None:
        return free_port()
    wait(lambda: _is_free(known.port), CLOSING)
    return known.port if _is_free(known.port) else free_port()


def _is_free(port: int) -> bool:
    try:
        return free_port(port) == port
    except OSError:
        return False


def _record(workspace: Path, server: Server) -> None:
    with records_lock(workspace):
        write_records(workspace, read_records(workspace) | {server.name: server})


def starting_lock(workspace: Path, name: str) -> FileLock:
    """Lock held while a server starts; servers of other names can start concurrently."""
    return FileLock(workspace / f"{name}-server.lock")


def records_lock(workspace: Path) -> FileLock:
    """Lock held while records are changed."""
    return FileLock(workspace / "servers.lock")


def read_records(workspace: Path) -> dict[str, Server]:
    """Servers that were started for this workspace, at its path or before it was moved, by name, running or not.

    Raises:
        ServerError: the file is damaged.
    """
    path = workspace / "servers.json"
    if not path.is_file():
        return {}
    try:
        servers = FILE.validate_json(path.read_bytes())
    except ValidationError as error:
        raise _damaged(path, error.errors()[0]["msg"]) from None
    if len({server.name for server in servers}) < len(servers):
        raise _damaged(path, "a name occurs twice")
    return {server.name: server for server in servers if is_at(server, workspace) or _was_moved(server, workspace)}


def is_at(server: Server, workspace: Path) -> bool:
    """Return True if the server was started for the workspace at this path."""
    return server.workspace in ("", os.path.realpath(workspace))


def _was_moved(server: Server, workspace: Path) -> bool:
    """Return True if the workspace has its server's inode, and the path that the server has does not."""
    try:
        there = Path(server.workspace).stat().st_ino
    except OSError:
        there = 0
    return server.folder == workspace.stat().st_ino != there


def write_records(workspace: Path, servers: Mapping[str, Server]) -> None:
    """Replace the file atomically."""
    part = workspace / "servers.json.part"
    here, folder = os.path.realpath(workspace), workspace.stat().st_ino
    whole = [replace(one, workspace=one.workspace or here, folder=one.folder or folder) for one in servers.values()]
    part.write_text(json.dumps([asdict(server) for server in whole], indent=1))
    part.replace(workspace / "servers.json")


def _damaged(path: Path, why: str) -> ServerError:
    return ServerError(
        f"{path}: damaged ({why}), no server was stopped: end those that run by hand, `ps x` lists them as "
        "coevo.flows.servers.prefect_server and mlflow_server with their port, then remove this file"
    )
