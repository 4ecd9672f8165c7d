"""One vLLM server of our own: its process, its log, and its end."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from configs.errors import CoevoError

GUARD = Path(__file__).with_name("guard.py")


class ServerError(CoevoError):
    """A server did not start: names its log."""


class Server:
    """A command that serves on a free loopback port; it ends with this process, whatever ends that.

    Args:
        command: what to run; ``--host`` and ``--port`` are appended.
        settings: environment variables besides our own.
        log: file that its output is appended to.
    """

    def __init__(self, command: Sequence[str], settings: Mapping[str, str], log: Path) -> None:
        self.log = log
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._logged = log.stat().st_size if log.exists() else 0
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, "-IS", str(GUARD), *command, "--host", "127.0.0.1", "--port", str(port)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**_inherited(), **settings},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id of its guard, whose only child it is."""
        return self._guard.pid

    def runs(self) -> bool:
        """Whether its process is alive; it need not answer."""
        return self._guard.poll() is None

    def wait(self, seconds: float, ready: Callable[[], bool]) -> None:
        """Return once it is ready.

        Raises:
            ServerError: it ended before, or took longer and was stopped.
        """
        give_up = time.monotonic() + seconds
        while not ready():
            if not self.runs():
                raise ServerError(f"the vLLM server ended before it was ready: {self._last_error()}; see {self.log}")
            if time.monotonic() > give_up:
                self.stop()
                raise ServerError(
                    f"the vLLM server was not ready after rollout.engine.startup_timeout={seconds:g} s and was "
                    f"stopped: raise the timeout, or see {self.log}"
                )
            time.sleep(0.1)

    def stop(self) -> None:
        """End it and all its children, kindly and then not."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()

    def _last_error(self) -> str:
        """The last line of its log that names an error, else the last one."""
        with self.log.open("rb") as log:
            log.seek(self._logged)
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if "Error" in line and "Traceback" not in line]
        return " ".join([*lines, *errors][-1].split())[:300] if lines else "it wrote nothing"


def _inherited() -> dict[str, str]:
    """Our environment without Prefect's part, which holds the secret of its server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
