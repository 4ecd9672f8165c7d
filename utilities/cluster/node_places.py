"""Places on the nodes of a cluster: an actor keeps a folder for one process, starts it, and passes on what it says.

The process ends with its actor, and the actor with its node or with the run. What it reads and writes travels through
the cluster, so that no file system need be shared; its log comes to this machine, line by line.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

from coevo.utilities.cluster.joined_cluster import Actor, ActorLostError, JoinedCluster, Reservation
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import POLL_INTERVAL_S, Launch, Launcher, Place, Resources, ServerProcess

CHUNK = 64 * 2**20
"""Bytes of a file that travel at once."""
CALL_S = 600.0
"""Seconds for a call that moves a part of a file, or ends a process."""
GRACE_S = 120.0
"""Seconds beyond its own limit that a read may take."""
LOST = -9
"""Exit status of a process whose actor has ended."""
PREFIX = "coevo-place-"
"""First part of the name of a place's folder."""
SWEEP = """
import os, shutil, sys, time
if os.fork():
    os._exit(0)
os.setsid()
sys.stdin.read()
for _ in range(30):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(1)
"""
"""Removes a folder once its actor is gone, however that ended; a process that used it may be leaving meanwhile.

Ray kills the children of an actor that it ends, so this is none.
"""
HOST = f"{__name__}:ProcessHost"
TRIES = 3
"""Searches for places whose node ends while their actors start."""


class ProcessHost:
    """Part of an actor: a folder, and a process.

    Args:
        host: address of the node.
    """

    def __init__(self, host: str) -> None:
        self._host, self._read = host, 0
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._log = self._folder / "log"
        sweep = [sys.executable, "-IS", "-c", SWEEP, str(self._folder)]
        self._sweeper = ServerProcess(Launch(sweep, {}, Path(os.devnull), directory="/", leash=True))
        self._process: ServerProcess | None = None

    def folder(self) -> str:
        """Path of the folder."""
        return str(self._folder)

    def start(self, launch: Launch) -> tuple[int, str]:
        """Start the process; returns its id, and its address."""
        guard = launch.guard and "twice"  # of which Ray kills one together with the actor
        launch = replace(launch, log=self._log, directory=launch.directory or self._folder, append=True, guard=guard)
        try:
            self._process = ServerProcess(launch, self._host)
        except OSError as error:
            raise CoevoError(f"{launch.command[0]}: {error.strerror} on the node {self._host}") from None
        return self._process.pid, self._process.address

    def write(self, line: bytes) -> bool:
        """Write to its input; False if it has ended."""
        try:
            self._started.write(line)
        except BrokenPipeError:
            return False
        return True

    def read(self, seconds: float) -> tuple[bytes | None, bytes]:
        """Part of its output, as in ``ServerProcess``, and what its log has got since the last call."""
        return self._started.read(seconds), self._logged()

    def ended(self) -> tuple[int | None, bytes]:
        """Exit status, None while it runs; and what its log has got since the last call."""
        return (None if self._started.runs() else self._started.status()), self._logged()

    def finish(self, how: str) -> bytes:
        """``stop``, ``kill`` or ``close`` the process; what its log has got since the last call."""
        getattr(self._started, how)()
        return self._logged()

    def store(self, name: str, chunk: bytes, first: bool) -> None:
        """Append to a file in the folder, or begin it."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb" if first else "ab") as file:
            file.write(chunk)

    def files(self, name: str) -> list[str]:
        """Files below a name in the folder, or the file itself."""
        return [str(each.relative_to(self._folder)) for each in _files(self._folder / name)]

    def load(self, name: str, start: int) -> bytes:
        """Part of a file in the folder."""
        with (self._folder / name).open("rb") as file:
            file.seek(start)
            return file.read(CHUNK)

    def forget(self, name: str) -> None:
        """Remove a file or folder in the folder."""
        path = self._folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def end(self) -> None:
        """End the process, and remove the folder."""
        if self._process is not None:
            self._process.close()
        self._sweeper.stop()

    @property
    def _started(self) -> ServerProcess:
        assert self._process is not None
        return self._process

    def _logged(self) -> bytes:
        if not self._log.exists():
            return b""
        with self._log.open("rb") as file:
            file.seek(self._read)
            found = file.read(CHUNK)
        if len(found) < CHUNK and self._process is not None and self._process.runs():
            found = found[: found.rfind(b"\n") + 1]  # the rest of the last line follows
        self._read += len(found)
        return found


class NodeProcess(ServerProcess):
    """A process on a node; started by ``NodePlace.start``."""

    def __init__(self, actor: Actor, launch: Launch) -> None:
        self._actor, self._launch, self.lost, self._noting = actor, launch, "", Lock()
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        launch.log.open("ab" if launch.append else "wb").close()  # messages name it, also where nothing is said
        self._pid, self.address = actor.call("start", launch, seconds=CALL_S)

    @property
    def pid(self) -> int:
        """Process id on its node."""
        return int(self._pid)

    def write(self, content: bytes, seconds: float | None = None) -> None:
        """As in ``ServerProcess``."""
        if not self._asked(False, "write", content, seconds=CALL_S if seconds is None else seconds):
            raise BrokenPipeError(self.lost or "the process has ended")

    def read(self, seconds: float) -> bytes | None:
        """As in ``ServerProcess``."""
        part, logged = self._asked((b"", b""), "read", seconds, seconds=seconds + GRACE_S)
        self._note(logged)
        return part  # type: ignore[no-any-return]

    def runs(self) -> bool:
        """As in ``ServerProcess``; brings its log up to date."""
        return self._ended() is None

    def status(self) -> int:
        """As in ``ServerProcess``; that of a killed process if its node is lost."""
        while (status := self._ended()) is None:
            time.sleep(POLL_INTERVAL_S)
        return status

    def stop(self) -> None:
        """As in ``ServerProcess``."""
        self._note(self._asked(b"", "finish", "stop", seconds=CALL_S))

    def kill(self) -> None:
        """As in ``ServerProcess``."""
        self._note(self._asked(b"", "finish", "kill", seconds=CALL_S))

    def close(self) -> None:
        """As in ``ServerProcess``."""
        self._note(self._asked(b"", "finish", "close", seconds=CALL_S))

    def _ended(self) -> int | None:
        status, logged = self._asked((LOST, b""), "ended", seconds=GRACE_S)
        self._note(logged)
        return status  # type: ignore[no-any-return]

    def _asked(self, otherwise: Any, method: str, *arguments: Any, seconds: float) -> Any:
        """Result of a call, or ``otherwise`` if the actor is lost."""
        if self.lost:
            return otherwise
        try:
            return self._actor.call(method, *arguments, seconds=seconds)
        except ActorLostError as error:
            self.lost = str(error)
            return otherwise

    def _note(self, logged: bytes) -> None:
        """Append lines of the process to the log, with its mark and its node."""
        if logged:
            mark = f"[{self._launch.mark} on {self._actor.node}] ".encode()
            with self._noting, self._launch.log.open("ab") as file:
                file.writelines(mark + line + b"\n" for line in logged.splitlines())


class NodePlace(Place):
    """A place on a node."""

    def __init__(self, actor: Actor, reservation: Reservation) -> None:
        self.actor, self._reservation = actor, reservation
        self.host = actor.node

    @cached_property
    def folder(self) -> Path:  # type: ignore[override]
        """As in ``Place``."""
        return Path(self.actor.call("folder", seconds=CALL_S))

    def start(self, launch: Launch) -> ServerProcess:
        """As in ``Place``."""
        return NodeProcess(self.actor, launch)

    def fetch(self, name: str, path: Path) -> None:
        """As in ``Place``; the copy there is removed."""
        for each in self.actor.call("files", name, seconds=CALL_S):
            into = path if each == name else path / Path(each).relative_to(name)
            into.parent.mkdir(parents=True, exist_ok=True)
            with into.open("wb") as file:
                while chunk := self.actor.call("load", each, file.tell(), seconds=CALL_S):
                    file.write(chunk)
        self.forget(name)

    def forget(self, name: str) -> None:
        """As in ``Place``."""
        with suppress(CoevoError):
            self.actor.call("forget", name, seconds=CALL_S)

    def end(self) -> None:
        """As in ``Place``; its resources are free again once all of its reservation have ended."""
        with suppress(CoevoError):
            if self.actor.pid:
                self.actor.call("end", seconds=GRACE_S)
        self.actor.end()
        self._reservation.leave()


class ClusterLauncher(Launcher):
    """Places on the nodes of a cluster.

    Args:
        join: joins the cluster.
        seconds: time in which there must be room, and the actors be there.
    """

    def __init__(self, join: Callable[[], JoinedCluster], seconds: float) -> None:
        self._join, self._seconds, self._names = join, seconds, count()

    def places(self, count: int, resources: Resources, asker: str) -> Sequence[Place]:
        """As in ``Launcher``: reserved together, on as few nodes as have room.

        Raises:
            ActorLostError: their nodes ended again and again, ``TRIES`` times.
        """
        for _ in range(TRIES - 1):
            with suppress(ActorLostError):
                return self._reserved(count, resources, asker)
        return self._reserved(count, resources, asker)

    def _reserved(self, count: int, resources: Resources, asker: str) -> Sequence[Place]:
        cluster = self._join()
        reservation = cluster.reserve(count, resources, asker, self._seconds)
        deadline = time.monotonic() + self._seconds
        found: list[NodePlace] = []
        try:
            actors = [cluster.actor(HOST, (node.address,), resources, node, (reservation, index))
                      for index, node in enumerate(reservation.nodes)]  # fmt: skip
            found += [NodePlace(actor, reservation) for actor in actors]
            for actor in actors:
                if not actor.ready(deadline - time.monotonic()):
                    raise cluster.late(resources, asker, self._seconds)
        except BaseException:
            for place in found:
                place.end()
            reservation.release()
            raise
        return found

    def send(self, path: Path, places: Sequence[Place]) -> str:
        """As in ``Launcher``; each part is stored in the cluster once, for all of them."""
        name, cluster = self.space(path), self._join()
        actors = [place.actor for place in places if isinstance(place, NodePlace)]
        for each in _files(path):
            relative = name if each == path else f"{name}/{each.relative_to(path)}"
            with each.open("rb") as file:
                first = True
                while (chunk := file.read(CHUNK)) or first:
                    stored = cluster.put(chunk)
                    for actor in actors:
                        actor.call("store", relative, stored, first, seconds=CALL_S)
                    first = False
        return name

    def space(self, path: Path) -> str:
        """As in ``Launcher``; no name is used twice."""
        return f"{next(self._names)}-{path.name}"


def _files(path: Path) -> list[Path]:
    """Files below a path, or the file itself."""
    return [path] if path.is_file() else [each for each in sorted(path.rglob("*")) if each.is_file()]
