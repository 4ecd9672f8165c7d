"""The trainer's processes on a cluster: an actor on a node for each, which runs the same child and passes its lines on.

Process 0 listens at its node's address and says at which port; the others get that on their input, and all meet in
torch's TCPStore. What they read and write travels through the cluster, so that no file system need be shared.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

from coevo.configs.placement_config import RayPlacement
from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.models.trainer.trainer_launch import CHILD, environment_of_ranks
from coevo.utilities.cluster.joined_cluster import Actor, ActorLostError, ClusterNode, JoinedCluster, asked, joined
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import LOOPBACK, POLL_INTERVAL_S, Launch, Resources, ServerProcess

POOL = "placement.pools.trainer"
FORWARDED = ("NCCL_", "GLOO_")
"""Prefixes of the environment variables that nodes get from this machine."""
CHUNK = 64 * 2**20
"""Bytes of a file that travel at once."""
CALL_S = 600.0
"""Seconds for a call that moves a part of a file, or ends a process."""
GRACE_S = 120.0
"""Seconds beyond its own limit that a read may take."""
HOST = f"{__name__}:RankHost"


class RankHost:
    """Part of an actor: one process of the trainer, with a folder for its files.

    Args:
        address: address of the node of process 0, as the others see it.
        variables: of the process's environment, in addition to the node's.
    """

    def __init__(self, address: str, variables: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="coevo-trainer-"))
        self._log = self._folder / "log"
        self._read = 0
        folders = os.pathsep.join(path for path in sys.path if path)
        environment = {**os.environ, **variables, "PYTHONPATH": folders}
        command = [sys.executable, "-P", "-m", CHILD, str(self._folder), address]
        self._process = ServerProcess(Launch(command, environment, self._log, leash=True, replies=True))

    def write(self, line: bytes) -> bool:
        """Write to its input; False if it has ended."""
        try:
            self._process.write(line)
        except BrokenPipeError:
            return False
        return True

    def read(self, seconds: float) -> tuple[bytes | None, bytes]:
        """Part of its output, as in ``Handle``, and what its log has got since the last call."""
        return self._process.read(seconds), self._logged()

    def ended(self) -> tuple[int | None, bytes]:
        """Exit status, None while it runs; and what its log has got since the last call."""
        return (None if self._process.runs() else self._process.status()), self._logged()

    def store(self, name: str, chunk: bytes, first: bool) -> None:
        """Append to a file in its folder, or begin it."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb" if first else "ab") as file:
            file.write(chunk)

    def files(self, name: str) -> list[str]:
        """Files below a name in its folder, or the file itself."""
        path = self._folder / name
        found = [path] if path.is_file() else [each for each in sorted(path.rglob("*")) if each.is_file()]
        return [str(each.relative_to(self._folder)) for each in found]

    def load(self, name: str, start: int) -> bytes:
        """Part of a file in its folder."""
        with (self._folder / name).open("rb") as file:
            file.seek(start)
            return file.read(CHUNK)

    def forget(self, name: str) -> None:
        """Remove a file or folder in its folder."""
        path = self._folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """End the process, and remove its files."""
        self._process.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _logged(self) -> bytes:
        if not self._log.exists():
            return b""
        with self._log.open("rb") as file:
            file.seek(self._read)
            found = file.read(CHUNK)
        self._read += len(found)
        return found


class ClusterRanks:
    """Trainer processes on a cluster, with the methods of ``trainer_launch.Launched``.

    Args:
        config: their number and device.
        log: file that their standard error is appended to, with the number and the node of each.
        placement: the cluster, and what each process takes.

    Raises:
        CoevoError: the cluster does not answer, or lacks room for them.
    """

    def __init__(self, config: DeepSpeedConfig, log: Path, placement: RayPlacement) -> None:
        self._cluster, self._log = joined(placement.address, placement.startup_timeout), log
        self._names, self._failed, self._heard, self._met = count(), "", b"", config.processes == 1
        nodes = _placed(self._cluster, placement, config.processes)
        forwarded = {name: value for name, value in os.environ.items() if name.startswith(FORWARDED)}
        loopback = nodes[0].address == LOOPBACK
        common = environment_of_ranks(config, loopback) | forwarded
        pool = placement.pools.trainer
        assert pool is not None
        resources = Resources(pool.cpus, pool.gpus, pool.resource)
        self._actors: list[Actor] = []
        try:
            for rank, node in enumerate(nodes):
                ranked = {"RANK": str(rank), "WORLD_SIZE": str(config.processes), "LOCAL_RANK": "0"}
                arguments = (nodes[0].address, common | ranked)
                self._actors.append(self._cluster.actor(HOST, arguments, resources, node))
            for actor in self._actors:
                if not actor.ready(placement.startup_timeout):
                    raise self._cluster.lacking(resources, POOL, placement.startup_timeout)
        except CoevoError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the actor of process 0, on its node."""
        return self._actors[0].pid

    def send(self, path: Path) -> str:
        """Copy a file or a directory to every process; returns its name in the folder of each."""
        name = f"{next(self._names)}-{path.name}"
        found = [path] if path.is_file() else [each for each in sorted(path.rglob("*")) if each.is_file()]
        for each in found:
            relative = name if each == path else f"{name}/{each.relative_to(path)}"
            with each.open("rb") as file:
                first = True
                while (chunk := file.read(CHUNK)) or first:
                    stored = self._cluster.put(chunk)
                    for actor in self._actors:
                        actor.call("store", relative, stored, first, seconds=CALL_S)
                    first = False
        return name

    def space(self, path: Path) -> str:
        """Name for what the processes write, to be fetched to ``path``."""
        return f"{next(self._names)}-{path.name}"

    def fetch(self, name: str, path: Path) -> None:
        """Copy what process 0 wrote under a name to ``path``, and remove it there."""
        actor = self._actors[0]
        for each in actor.call("files", name, seconds=CALL_S):
            into = path if each == name else path / Path(each).relative_to(name)
            into.parent.mkdir(parents=True, exist_ok=True)
            with into.open("wb") as file:
                while chunk := actor.call("load", each, file.tell(), seconds=CALL_S):
                    file.write(chunk)
        self.forget(name)

    def forget(self, name: str) -> None:
        """Remove what was sent or written under a name."""
        with suppress(CoevoError):
            for actor in self._actors:
                actor.call("forget", name, seconds=CALL_S)

    def write(self, line: bytes) -> None:
        """Write to the input of process 0. Raises ``BrokenPipeError`` if it has ended."""
        try:
            if not self._actors[0].call("write", line, seconds=CALL_S):
                raise BrokenPipeError
        except ActorLostError as error:
            self._failed = str(error)
            raise BrokenPipeError from None

    def read(self, seconds: float) -> bytes | None:
        """Part of the replies of process 0; None for nothing in that time, and ``b""`` at the end."""
        try:
            part, logged = self._actors[0].call("read", seconds, seconds=seconds + GRACE_S)
        except ActorLostError as error:
            self._failed = str(error)
            return b""
        self._note(0, logged)
        if self._met or not part:
            return part  # type: ignore[no-any-return]
        self._heard += part
        line, end, rest = self._heard.partition(b"\n")
        if not end:
            return None
        if line.startswith(b"{"):  # it failed before
            self._met = True
            return self._heard
        for actor in self._actors[1:]:
            actor.call("write", line + b"\n", seconds=CALL_S)
        self._met = True
        return rest or None

    def kill(self) -> None:
        """End all of them at once."""
        for actor in self._actors:
            actor.end()

    def close(self) -> None:
        """End all of them, and remove their files."""
        for actor in self._actors:
            with suppress(CoevoError):
                if actor.pid:
                    actor.call("close", seconds=GRACE_S)
            actor.end()

    def ended(self) -> bool:
        """True if one of them has ended; they work together or not at all."""
        return any(status is not None for status in self._statuses())

    def last_words(self) -> str:
        """Reason of their end, in one line; call it only after an end."""
        for rank, (actor, status) in enumerate(zip(self._actors, self._statuses(), strict=True)):
            if status is None:
                continue
            if words := self._error_of(actor):
                return words
            how = self._failed if self._failed else f"exit status {status}"
            return f"process {rank} of the trainer on {actor.node} ended ({how}); see {self._log}"
        return f"the trainer ended ({self._failed}); see {self._log}"

    def _error_of(self, actor: Actor) -> str:
        """Error line that a process left in its output."""
        with suppress(CoevoError, ValueError):
            part, _ = actor.call("read", 0.0, seconds=GRACE_S)
            for line in (part or b"").splitlines():
                if line.startswith(b"{") and "error" in (reply := json.loads(line)):
                    return str(reply["error"])
        return ""

    def _statuses(self) -> list[int | None]:
        """Exit status of each; None for one that runs."""
        found: list[int | None] = []
        for rank, actor in enumerate(self._actors):
            try:
                status, logged = actor.call("ended", seconds=GRACE_S)
                self._note(rank, logged)
            except ActorLostError as error:
                status, self._failed = -9, self._failed or str(error)
            found.append(status)
        return found

    def _note(self, rank: int, logged: bytes) -> None:
        """Append lines of a process to the log, with its number and node."""
        if logged:
            mark = f"[{rank} on {self._actors[rank].node}] ".encode()
            with self._log.open("ab") as file:
                file.writelines(mark + line + b"\n" for line in logged.splitlines())


def _placed(cluster: JoinedCluster, placement: RayPlacement, count: int) -> list[ClusterNode]:
    """Node of each process: as many as fit on the first one with room, then the next.

    Raises:
        ClusterError: there is no room for all.
    """
    pool = placement.pools.trainer
    assert pool is not None
    resources = Resources(pool.cpus, pool.gpus, pool.resource)
    nodes: list[ClusterNode] = []
    give_up = time.monotonic() + placement.startup_timeout  # those of a run that ended may be leaving
    while len(nodes) < count:
        nodes = []
        for node in cluster.suited(resources, POOL):
            rooms = (int(node.free.get(name, 0.0) / amount) for name, amount in asked(resources).items())
            nodes += [node] * min(count - len(nodes), *rooms, count)
        if len(nodes) < count and time.monotonic() > give_up:
            raise cluster.lacking(resources, f"{POOL}, for each of {count} processes,", placement.startup_timeout)
        time.sleep(POLL_INTERVAL_S)
    return nodes
