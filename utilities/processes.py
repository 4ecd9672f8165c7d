"""Processes that serve on a port or speak over pipes: the places where they start, their start, the wait, and the end.

In the lowest room, since models (vLLM, the trainer) and flows (Prefect, MLflow, packages) start processes. No
supervisor such as supervisord or systemd does it: a process here starts on demand, and most end with what started them.
A ``Launcher`` finds places, and ``Place.start`` starts a command in one; a ``ServerProcess`` is its handle. Those here
are of this machine. Those of a cluster are in ``coevo.utilities.cluster.node_places``: an actor starts the same command
on its node.
"""

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from coevo.utilities import process_guard
from coevo.utilities.errors import CoevoError
from coevo.utilities.local_http import LOOPBACK, free_port

STOP_TIMEOUT_S = 10.0
"""Seconds that a process group has to end after a signal."""
UTF8 = {"PYTHONUTF8": "1"}
"""Variable of a Python process that reads and writes files as UTF-8 in every locale."""
POLL_INTERVAL_S = 0.1
"""Seconds between two looks."""
CHUNK = 65536
"""Most bytes of a read."""
ELSEWHERE = ("Traceback", "See root cause above", "See stack trace")
"""Parts of lines that name an error of another line."""
PREFIX = re.compile(r"^\(\w+ pid=\d+\)\s*(?:[A-Z]+ [\d-]+ [\d:]+ \[[^\]]*\]\s*)?")
"""Process before a line of vLLM, and level, time and place of one of its log."""


class PlaceLostError(CoevoError):
    """A place has ended: with its node, by itself, or because it gave no answer."""


class NotReadyError(CoevoError):
    """A server ended before it was ready, or was not ready in time; the sentence lacks its subject."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command to start.

    Attributes:
        command: program and arguments. In each, and in the variables, ``{host}`` and ``{port}`` become the address to
            serve at, ``{python}`` the interpreter of the place, and ``{path}`` the folders that it imports from.
        variables: environment variables in addition to those of the place.
        log: file on this machine that takes its output.
        directory: where it starts; None for the directory of this process, on a node for the folder of its place.
        append: True to keep what the log has.
        leash: True to give the command a pipe as its standard input, which ends with this process, whatever ends that.
        replies: True for a pipe as its standard output, which ``read`` reads; the log takes its errors then.
        guard: guard that ends it and all that it starts: ``leash`` with this process, ``twice`` for two of these, and
            ``detached`` for two that end on SIGTERM alone.
        withheld: prefixes of the place's variables that it does not get; an empty one withholds all.
        port: port that it is to serve at; 0 for a free one.
        mark: its name in the log, for lines that come from another machine.
    """

    command: Sequence[str]
    variables: Mapping[str, str]
    log: Path
    directory: str | Path | None = None
    append: bool = False
    leash: bool = False
    replies: bool = False
    guard: Literal["", "leash", "twice", "detached"] = ""
    withheld: tuple[str, ...] = ()
    port: int = 0
    mark: str = ""


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


ONE_CORE = Resources()


class Place:
    """A place for one process and its files; this one is on this machine, where all processes see the same files.

    Attributes:
        host: address of its machine, as the others see it.
        folder: folder there that the names of files belong to.
    """

    host = LOOPBACK
    folder = Path("/")

    def start(self, launch: Launch) -> "ServerProcess":
        """Start a command. Raises ``CoevoError`` if the place is lost."""
        return ServerProcess(launch)

    def fetch(self, name: str, path: Path) -> None:
        """Bring what was written under a name to ``path``, the one that the name was made for."""

    def forget(self, name: str) -> None:
        """Remove a copy of what was sent; the original stays."""

    def end(self) -> None:
        """End what runs there, and leave nothing behind; processes of this machine are ended by their handles."""


class Launcher:
    """A source of places; this one is this machine, which has room for all."""

    def places(self, count: int, resources: Resources, asker: str) -> Sequence[Place]:
        """Places for so many processes, all at once; ``asker`` names the setting.

        Raises:
            CoevoError: there is no room in time; says what is asked, and what each node has.
        """
        return [Place()] * count

    def start(self, launch: Launch, resources: Resources = ONE_CORE, asker: str = "") -> "ServerProcess":
        """Start a command in a place of its own. Raises ``CoevoError`` as ``places`` and ``Place.start`` do."""
        (place,) = self.places(1, resources, asker)
        return place.start(launch)

    def send(self, path: Path, places: Sequence[Place]) -> str:
        """Make a file or directory known at places; returns its name there."""
        return self.space(path)

    def space(self, path: Path) -> str:
        """Name of a file or directory that a process is to write, for ``path``."""
        return str(path.absolute())


HERE = Launcher()


def placed(launch: Launch, host: str = LOOPBACK) -> Launch:
    """A launch with what its placeholders stand for on this machine."""
    texts = (*launch.command, *launch.variables.values())
    port = launch.port or (free_port(host=host) if any("{port}" in text for text in texts) else 0)
    folders = os.pathsep.join(path for path in sys.path if path)
    known = {"{host}": host, "{port}": str(port), "{python}": sys.executable, "{path}": folders}
    variables = {name: _filled(value, known) for name, value in launch.variables.items()}
    return replace(launch, command=[_filled(part, known) for part in launch.command], variables=variables, port=port)


def _filled(text: str, known: Mapping[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(name, value)
    return text


class ServerProcess:
    """A child process that leads a session and process group of its own, so that Ctrl-C does not reach it.

    Args:
        launch: how to start it.
        host: address of this machine that it is to serve at.

    Attributes:
        address: ``HOST:PORT`` that it is to serve at; the host alone for a process without a port.
        lost: reason why its machine gives no answer any more; empty while it does.
    """

    lost = ""
    _heard = b""

    def __init__(self, launch: Launch, host: str = LOOPBACK) -> None:
        launch = placed(launch, host)
        self.address = f"{host}:{launch.port}" if launch.port else host
        guard = [sys.executable, "-IS", process_guard.__file__] if launch.guard else []
        guard += [f"--{launch.guard}"] if launch.guard in ("twice", "detached") else []
        leash = launch.leash or launch.guard in ("leash", "twice")
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        with launch.log.open("ab" if launch.append else "wb") as output:
            self._process = subprocess.Popen(
                [*guard, *launch.command],
                cwd=launch.directory,
                stdin=subprocess.PIPE if leash else subprocess.DEVNULL,
                stdout=subprocess.PIPE if launch.replies else output,
                stderr=output,
                bufsize=0,
                env={**inherited(launch.withheld), **launch.variables},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id, and id of its process group."""
        return self._process.pid

    def write(self, content: bytes, seconds: float | None = None) -> None:
        """Write to its leash. Raises ``BrokenPipeError`` if it has ended, ``TimeoutError`` if it does not read."""
        assert self._process.stdin is not None
        number, deadline = self._process.stdin.fileno(), time.monotonic() + (seconds or 0.0)
        os.set_blocking(number, False)
        while content:
            left = None if seconds is None else max(0.0, deadline - time.monotonic())
            if not select.select([], [number], [], left)[1]:
                raise TimeoutError
            content = content[os.write(number, content) :]

    def read(self, seconds: float) -> bytes | None:
        """Part of its replies; None if it writes nothing in that time, and ``b""`` at its end."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return None
        return os.read(self._process.stdout.fileno(), CHUNK)

    def line(self, seconds: float, most: int | None = None) -> bytes | None:
        """Next line of its replies, with its end; None for none in that time. At their end, what is left without one.

        Raises:
            ValueError: a line of more than ``most`` bytes.
        """
        deadline = time.monotonic() + seconds
        while b"\n" not in self._heard:
            part = self.read(max(0.0, deadline - time.monotonic()))
            if part is None:
                return None
            self._heard += part
            if not part:
                break
            if most is not None and len(self._heard) > most:
                raise ValueError(f"a line of more than {most} bytes")
        line, end, self._heard = self._heard.partition(b"\n")
        return line + end

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
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill it if it runs, wait for its end, and close its pipes."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
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


@dataclass(frozen=True, slots=True)
class Starting:
    """A server that was started.

    Attributes:
        handle: its process.
        log: its log.
        written: bytes that the log had before.
        limit: setting that limits the wait, for messages.
    """

    handle: "ServerProcess"
    log: Path
    written: int = 0
    limit: str = ""

    def wait(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until it is ready; it is stopped if that takes longer.

        Raises:
            NotReadyError: it ended before, or took longer; names the log.
        """
        if wait_ready(ready, self.handle.runs, seconds) and self.handle.runs():
            return
        if not self.handle.runs():
            why = self.handle.lost or last_error(self.log, self.written)
            raise NotReadyError(f"ended before it was ready: {why}; see {self.log}")
        self.handle.stop()
        limit, remedy = (f"{self.limit}=", "raise the limit, or ") if self.limit else ("", "")
        raise NotReadyError(f"was not ready in {limit}{seconds:g} s and was stopped: {remedy}see {self.log}")


def last_error(log: Path, start: int = 0) -> str:
    """Last line of a log, from a place in it on, that names an error and not another line; else its last line."""
    if not log.exists():
        return "it wrote nothing"
    with log.open("rb") as file:
        file.seek(start)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    named = [line for line in lines if not any(word in line for word in ELSEWHERE)]
    errors = [line for word in ("error:", "Error") for line in named if word in line]
    return " ".join(PREFIX.sub("", [*lines, *errors][-1]).split())[:300] if lines else "it wrote nothing"


def size_of(log: Path) -> int:
    """Bytes of a log; 0 if there is none."""
    return log.stat().st_size if log.exists() else 0


def inherited(withheld: Sequence[str] = ()) -> dict[str, str]:
    """Our environment without the variables whose names begin with a prefix."""
    return {name: value for name, value in os.environ.items() if not name.startswith(tuple(withheld))}
