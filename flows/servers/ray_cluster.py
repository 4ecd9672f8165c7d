"""The Ray cluster of a workspace on this machine: nodes are recorded as servers, and ``coevo down`` stops them, too."""

import os
from pathlib import Path

import psutil

from coevo.configs.placement_config import RayPlacement
from coevo.configs.run_config import RunConfig
from coevo.configs.threads import usable_cores
from coevo.flows.servers.daemon import down, read_records, recorded, records_lock, starting_lock, write_records
from coevo.flows.servers.server_process import NO_HTTP, Server
from coevo.flows.servers.server_secret import home, secret_of
from coevo.tasks.publish.reporter import in_stage
from coevo.utilities.cluster.raylets import ClusterFiles, Raylet, access, remove_session, start_head, start_node
from coevo.utilities.errors import CoevoError

LOCK = "cluster"
"""Held while nodes start or stop."""
HEAD = "ray"
"""Name of the head; further nodes are ``ray-2``, ``ray-3`` and so on."""


def cluster_up(workspace: Path, nodes: int, cpus: int | None, seconds: float) -> list[Server]:
    """Nodes of the workspace's cluster, with those started that are missing.

    Args:
        workspace: the workspace.
        nodes: number of nodes on this machine.
        cpus: cores that each node offers; None for all that this process may use.
        seconds: limit of each attempt to start a node; there are two.

    Raises:
        CoevoError: a node did not start; those before it are kept.
    """
    secret_of(workspace, HEAD)
    with starting_lock(workspace, LOCK):
        running = cluster_nodes(workspace)
        if not any(node.name == HEAD for node in running):
            _stop(workspace)
            running = []
        files, offered = _files(workspace), cpus or usable_cores()
        while len(running) < nodes:
            names = {node.name for node in running}
            number = next(at for at in range(1, nodes + 1) if _name(at) not in names)
            with in_stage(f"starts node {number} of the Ray cluster"):
                if number == 1:
                    started = start_head(files, offered, seconds)
                else:
                    started = start_node(files, number, running[0].port, offered, seconds)
            running.append(_recorded(workspace, _name(number), started))
        return running


def cluster_nodes(workspace: Path) -> list[Server]:
    """Nodes of the workspace's cluster that run, the head first."""
    found = [each for each in recorded(workspace) if each.name.partition("-")[0] == HEAD and each.runs()]
    return sorted(found, key=lambda server: (len(server.name), server.name))


def cluster_down(workspace: Path) -> list[str]:
    """Stop the workspace's cluster; return the names of the nodes that were running."""
    with starting_lock(workspace, LOCK):
        return _stop(workspace)


def cluster_address(workspace: Path) -> str:
    """``HOST:PORT`` of the workspace's cluster, which this process and its children may use from now on.

    Raises:
        CoevoError: none runs.
    """
    nodes = cluster_nodes(workspace)
    if not nodes or nodes[0].name != HEAD:
        raise CoevoError(f"no Ray cluster of {workspace} runs: start it with `coevo cluster up`, or set RAY_ADDRESS")
    os.environ |= access(home(workspace, HEAD) / "secret") | {"RAY_ADDRESS": f"127.0.0.1:{nodes[0].port}"}
    return os.environ["RAY_ADDRESS"]


def use_cluster(config: RunConfig, workspace: Path) -> None:
    """Make this process and its children use the workspace's cluster, where the run's placement leaves that open.

    Raises:
        CoevoError: none runs.
    """
    placement = config.placement
    if isinstance(placement, RayPlacement) and placement.address == "auto" and not os.environ.get("RAY_ADDRESS"):
        cluster_address(workspace)


def _files(workspace: Path) -> ClusterFiles:
    folder = home(workspace, HEAD)
    return ClusterFiles(folder / "secret", folder / "session", folder)


def _stop(workspace: Path) -> list[str]:
    stopped = down(workspace, f"{HEAD}-") + down(workspace, HEAD)
    remove_session(_files(workspace))
    return stopped


def _name(number: int) -> str:
    return HEAD if number == 1 else f"{HEAD}-{number}"


def _recorded(workspace: Path, name: str, started: Raylet) -> Server:
    pid = started.process.pid
    try:
        server = Server(name, pid, psutil.Process(pid).create_time(), started.port, NO_HTTP)
        with records_lock(workspace):
            write_records(workspace, read_records(workspace) | {name: server})
    except BaseException:
        started.process.stop()
        raise
    return server
