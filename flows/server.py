"""A server that was started here: whether it runs, whether it answers, and its end."""

import os
import signal
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import psutil
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from configs.errors import CoevoError


class ServerError(CoevoError):
    """A server did not start: names its log."""


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Server:
    """One that was started here.

    Attributes:
        name: unique in its workspace.
        pid: its process, leader of its process group.
        started: when that process began, seconds since 1970: process ids are used again.
        port: on 127.0.0.1.
        health: path that answers 200.
        workspace: path that it was started for; empty where coevo did not note it yet.
    """

    name: str
    pid: Annotated[int, Field(gt=1)]
    started: Annotated[float, Field(allow_inf_nan=False)]
    port: Annotated[int, Field(ge=1, le=65535)]
    health: Annotated[str, Field(pattern=r"^/[\w/.-]*$")]
    workspace: str = ""

    @property
    def url(self) -> str:
        """Root of its pages."""
        return f"http://127.0.0.1:{self.port}"

    def runs(self) -> bool:
        """Return True if its process is still the one that was started."""
        try:
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and self._is(process)
        except psutil.NoSuchProcess:
            return False

    def _is(self, process: psutil.Process) -> bool:
        """By its command, too, which ends with the port: when the clock is set, all processes began at another time."""
        return bool(process.create_time() == self.started or process.cmdline()[-1:] == [str(self.port)])

    def answers(self) -> bool:
        """Return True if it takes requests."""
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
            wait(lambda: not self.runs(), seconds=10)


def reach_directly() -> None:
    """Let this process and its children reach the servers of this machine past any proxy, which would see secrets."""
    for name in ("no_proxy", "NO_PROXY"):
        known = [host for host in os.environ.get(name, "").split(",") if host]
        os.environ[name] = ",".join(dict.fromkeys([*known, "127.0.0.1", "localhost"]))


def wait(done: Callable[[], bool], seconds: float) -> None:
    """Return once it is done, or the time is over."""
    give_up = time.monotonic() + seconds
    while not done() and time.monotonic() < give_up:
        time.sleep(0.1)
