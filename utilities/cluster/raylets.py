"""A cluster of this machine: the head and further nodes, each a process tree below guards that a signal ends.

Ray's own end, ``ray stop``, would end the clusters of everybody on the machine.
"""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from coevo.utilities.cluster.joined_cluster import ON_LOOPBACK, QUIET, ClusterError
from coevo.utilities.local_http import LOOPBACK, free_port
from coevo.utilities.processes import HERE, UTF8, Launch, NotReadyError, ServerProcess, Starting, size_of

KEPT = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "OMP_NUM_THREADS")
KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "NCCL_", "GLOO_")
"""Variables that nodes get of our environment; the others may hold secrets, and Ray's processes show theirs."""
PATIENT = {
    "RAY_agent_register_timeout_ms": "240000",
    "RAY_raylet_start_wait_time_s": "240",
    "RAY_worker_register_timeout_seconds": "240",
}
"""A node whose agent is late on a busy machine would end itself, and leave whoever waits for it without an answer."""
WATCHFUL = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "4",
}
"""A frozen node is given up after about 10 s instead of a minute."""
EQUAL = {"RAY_worker_niceness": "0"}
"""Ray gives actors a niceness of 15: beside other programs of a machine, hardly any time of its processors."""
AGENT_PORTS = (
    "--dashboard-agent-grpc-port",
    "--dashboard-agent-listen-port",
    "--metrics-export-port",
    "--runtime-env-agent-port",
)
"""Ports of a node's agents, for the same reason: it waits for one that an agent chooses itself."""
PREFIX = "coevo-ray-"
"""First part of the name of a session's folder."""
INNER = "r"
"""Folder in it for Ray, which lets everybody into its own."""
LONGEST_FOLDER = 22
"""Most bytes of the path around it: those of Ray's sockets in it may have 107."""
STARTED = b"Ray runtime started."
"""Line of ``ray start`` once a node is up."""
START = """
import sys
from types import SimpleNamespace
from ray._private import services
from ray.scripts import scripts
scripts.ray_constants = SimpleNamespace(**{**vars(scripts.ray_constants), "ENABLE_RAY_CLUSTER": True})
port = [part.replace("-", "_").replace("__", "--", 1) for part in sys.argv if "agent-listen-port=" in part]
start = services.start_ray_process
services.start_ray_process = lambda line, kind, *more, **named: start(
    [*line, *(port if kind == "raylet" else [])], kind, *more, **named
)
scripts.main()
"""
"""The command ``ray``, which with ``ON_LOOPBACK`` would start no node but a head; its processes see the setting.

It does not tell a node at which port its agent listens: the node waits for the agent, and aborts if that is late.
"""
HEAD = "head"
"""Name of the log of the first node."""
STORE_BYTES = 200_000_000
"""Memory for objects of a node."""


@dataclass(frozen=True)
class ClusterFiles:
    """Files of a cluster of this machine.

    Attributes:
        token: file with the secret, for its owner alone.
        session: link to the folder of Ray's sockets and logs, whose own path has to be short.
        logs: folder of the logs of starts.
    """

    token: Path
    session: Path
    logs: Path


@dataclass(frozen=True)
class Raylet:
    """A started node.

    Attributes:
        process: its guards.
        port: port of the cluster, for the head.
    """

    process: ServerProcess
    port: int


def access(token: Path) -> dict[str, str]:
    """Variables with which a process may use the cluster."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}


def start_head(files: ClusterFiles, cpus: int, seconds: float) -> Raylet:
    """Start the head of a cluster on a free loopback port; a start that fails is tried once more.

    Raises:
        ClusterError: both failed; names the log.
    """
    remove_session(files)
    temporary = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=temporary if len(os.fsencode(temporary)) <= LONGEST_FOLDER else "/tmp")
    files.session.symlink_to(folder)
    for last in (False, True):
        port = free_port()
        asked = [
            "--head",
            f"--port={port}",
            "--include-dashboard=false",
            "--no-monitor",
            f"--temp-dir={folder}/{INNER}",
        ]
        process = _started([*asked, *_size(cpus)], files, HEAD, seconds, last)
        if process is not None:
            return Raylet(process, port)
    raise AssertionError


def start_node(files: ClusterFiles, number: int, port: int, cpus: int, seconds: float) -> Raylet:
    """Start a further node of the cluster at a port; a start that fails is tried once more.

    Raises:
        ClusterError: both failed; names the log.
    """
    for last in (False, True):
        asked = [f"--address={LOOPBACK}:{port}", *_size(cpus)]
        process = _started(asked, files, f"node-{number}", seconds, last)
        if process is not None:
            return Raylet(process, port)
    raise AssertionError


def remove_session(files: ClusterFiles) -> None:
    """Remove sockets and logs of an earlier cluster."""
    if files.session.is_symlink():
        folder = files.session.resolve()
        if folder.name.startswith(PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
        files.session.unlink()


def _size(cpus: int) -> list[str]:
    with ExitStack() as held:  # all at once, so that no port is given twice
        taken = [held.enter_context(socket.create_server((LOOPBACK, 0))) for _ in AGENT_PORTS]
        ports = [f"{name}={each.getsockname()[1]}" for name, each in zip(AGENT_PORTS, taken, strict=True)]
    return [f"--num-cpus={cpus}", f"--object-store-memory={STORE_BYTES}", *ports]


def _started(asked: list[str], files: ClusterFiles, name: str, seconds: float, last: bool) -> ServerProcess | None:
    """Start a node and wait until it is up; None if it failed and is not the last attempt."""
    log = files.logs / f"{name}.log"
    ray = ["{python}", "-P", "-c", START, "start", "--block", "--disable-usage-stats"]
    ray += [f"--node-ip-address={LOOPBACK}", *asked]
    variables, written = _variables(os.environ, files.token), size_of(log)
    launch = Launch(ray, variables, log, directory=sys.prefix, append=True, guard="detached", withheld=("",))
    process = HERE.start(launch)
    try:
        Starting(process, log, written, "--seconds").wait(lambda: STARTED in log.read_bytes()[written:], seconds)
    except NotReadyError as error:
        if not last:
            return None
        if name == HEAD:
            remove_session(files)
        raise ClusterError(f"Ray's {name}, started twice, {error}") from None
    except BaseException:
        process.stop()  # an interrupted command leaves no node behind
        raise
    return process


def _variables(ours: Mapping[str, str], token: Path) -> dict[str, str]:
    """Environment of a node's processes."""
    kept = {name: value for name, value in ours.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
    folders = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)  # noqa: PTH100
    return kept | QUIET | ON_LOOPBACK | PATIENT | WATCHFUL | EQUAL | access(token) | UTF8 | {"PYTHONPATH": folders}
