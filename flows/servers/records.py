"""``servers.json``: the servers that were started for a workspace.

In a copy of the workspace, it names servers of the original, which commands on the copy neither use nor stop. In a
workspace that was moved, it names servers that still look for their files at the old path: commands stop them.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from coevo.flows.servers.server_process import Server, ServerError

FILE = TypeAdapter(list[Server])


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
