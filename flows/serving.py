"""Serving a package at an endpoint of its own, and playing a panel through one."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from configs.env import EnvConfig
from configs.errors import CoevoError
from configs.rollout import RolloutConfig
from envs.registry import make
from flows.endpoint.limits import Limits
from flows.evaluate import Evaluation, Request
from flows.interrupt import at_once
from flows.package import package
from flows.reference import Reference, reading
from flows.server import reach_directly
from lineage.workspace import Workspace
from tasks import telemetry
from tasks.evaluate import play_panel
from tasks.registry import fetch, find, save
from tasks.retrieve import NOTHING
from tasks.served import ServedPlayer
from tasks.tracking.store import tracking_store

STARTUP = 300.0
"""Seconds after which a server that does not answer is given up."""
LOOPBACK = "127.0.0.1"
ANYWHERE = "0.0.0.0"
"""The host that stands for every address of the machine."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A package that is being served.

    Attributes:
        name: ``RUN@N`` or ``MODEL/VERSION``.
        url: root of its server.
        process: the server.
        log: what it says.
    """

    name: str
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> None:
        """Wait until the server ends.

        Raises:
            CoevoError: it ended by itself.
        """
        raise CoevoError(f"the server at {self.url} ended with code {self.process.wait()}: see {self.log}")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and to whom.

    Attributes:
        host: address to listen on.
        port: a free one where None.
        allowed: names that requests may give for the server, besides its own.
    """

    host: str = LOOPBACK
    port: int | None = None
    allowed: Sequence[str] = ()


@contextmanager
def serve(what: str, address: Address, limits: Limits, place: Workspace) -> Iterator[Serving]:
    """Serve a package within the block.

    Args:
        what: ``RUN[@N]``, ``MODEL/VERSION`` or ``MODEL@ALIAS``; ``models:/`` before the last two tells them from runs.
        address: of the server.
        limits: the largest request that it takes.
        place: the workspace.

    Raises:
        CoevoError: it is not there, the port is taken, or the server did not start.
    """
    reach_directly()
    host, port = address.host, _port(address.host, address.port)
    with _model(what, place) as (name, directory):
        log = place.root.resolve() / f"serve-{port}.log"
        process = _start(directory, ["--host", host, "--port", str(port), *_options(address, limits)], log)
        try:
            url = f"http://{LOOPBACK if host == ANYWHERE else host}:{port}"
            with at_once(lambda: os.killpg(process.pid, signal.SIGKILL)):
                _wait(process, url, log)
                yield Serving(name, url, process, log)
        finally:
            _stop(process)


def evaluate_through(url: str, reference: str, request: Request, place: Workspace) -> Evaluation:
    """What ``coevo evaluate`` does, by the agent behind a URL instead of the run's policy and bank.

    Raises:
        CoevoError: the run or panel is not there, another bank or several attempts are asked for, or the endpoint
            does not answer.
    """
    if request.bank != "own" or request.discovery:
        what = f"--bank {request.bank}" if request.bank != "own" else f"--discovery {request.discovery}"
        raise CoevoError(f"{what}: an agent that is served has its own bank, and keeps it; leave out one of the two")
    with reading(reference, place) as opened:
        config = opened.config
        place.trust.demand(opened.paths.name, config)
    return play_through(url, config.env, request.panel, request.tasks or config.evaluation.tasks, config.seed)


def play_through(url: str, env: EnvConfig, panel: str, tasks: int, seed: int) -> Evaluation:
    """Play a held-out panel with the agent behind a URL; it ends as it does in the process of ``coevo evaluate``.

    Args:
        url: of ``coevo serve``.
        env: configuration of the environment, which is here.
        panel: one that is played with the agent's own bank.
        tasks: how many of its tasks.
        seed: of the draws; a run's evaluations have the run's.

    Raises:
        CoevoError: there is no such panel, it has entries of its own, or the endpoint does not answer.
    """
    environment = make(env)
    if panel not in environment.panels:
        raise CoevoError(f"{panel!r} is no panel of {environment.name}: choose one of {', '.join(environment.panels)}")
    if environment.panel_bank(panel) is not None:
        raise CoevoError(f"{panel}: is not played with the agent's own bank, and a served agent has no other one")
    played = environment.panel(panel, tasks)
    player = ServedPlayer(environment, url, seed, RolloutConfig().max_turns)
    return Evaluation(played, play_panel(player, played, NOTHING, seed, 0), {})


@contextmanager
def _model(what: str, place: Workspace) -> Iterator[tuple[str, Path]]:
    """Name, and directory of the model of MLflow: fetched from the registry, or made of a run's revision."""
    with TemporaryDirectory(prefix="coevo-") as scratch:
        made = Path(scratch) / "model"
        if _is_run(what, place):
            with reading(what, place) as opened:
                place.trust.demand(opened.paths.name, opened.config)
                save(package(opened, Path(scratch) / "package"), made)
                name = opened.name
        else:
            store = tracking_store(place.root)
            registered = find(store, what)
            made, name = fetch(store, registered, made), registered.name
        yield name, made


def _is_run(what: str, place: Workspace) -> bool:
    if "/" in what:
        return False
    return "@" not in what or place.run(Reference.parse(what).run).created.is_file()


def _port(host: str, port: int | None) -> int:
    with socket.socket() as probe:
        try:
            probe.bind((host, port or 0))
        except OSError as error:
            raise CoevoError(
                f"{host}:{port}: {os.strerror(error.errno or 0)}: choose another --port or --host"
            ) from None
        return int(probe.getsockname()[1])


def _options(address: Address, limits: Limits) -> Iterator[str]:
    for name in address.allowed:
        yield f"--allow-host={name}"
    for name, most in asdict(limits).items():
        yield f"--{name}={most}"


def _start(directory: Path, options: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "flows.endpoint", str(directory), *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=directory,  # MLflow may leave a database where it starts
            env={**os.environ, **telemetry.OFF},
        )


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    give_up = time.monotonic() + STARTUP
    while not _answers(url):
        if process.poll() is not None or time.monotonic() > give_up:
            raise CoevoError(f"the server at {url} did not start: see {log}")
        time.sleep(0.2)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ping", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server with its children, kindly and then not."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, kind)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                continue
