"""One vLLM server of the run: its process, its log, and its end."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from coevo.utilities import process_guard
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import Launch, ServerProcess, free_port, wait_ready

ELSEWHERE = ("Traceback", "See root cause above", "See stack trace")
"""Parts of lines that name an error of another line."""
PREFIX = re.compile(r"^\(\w+ pid=\d+\)\s*(?:[A-Z]+ [\d-]+ [\d:]+ \[[^\]]*\]\s*)?")
"""Process before a line of vLLM, and level, time and place of one of its log."""


class VllmServerError(CoevoError):
    """The server did not start; names its log."""


class VllmServer:
    """A command that serves on a free loopback port; it ends with this process, however that ends.

    Args:
        command: the command; ``--host`` and ``--port`` are appended.
        settings: environment variables in addition to our own.
        log: file that its output is appended to.
    """

    def __init__(self, command: Sequence[str], settings: Mapping[str, str], log: Path) -> None:
        self.log = log
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._logged = log.stat().st_size if log.exists() else 0
        log.parent.mkdir(parents=True, exist_ok=True)
        line = [sys.executable, "-IS", process_guard.__file__, *command, "--host", "127.0.0.1", "--port", str(port)]
        self._guard = ServerProcess(Launch(line, {**inherited(), **settings}, log, append=True, leash=True))

    @property
    def pid(self) -> int:
        """Process id of its guard, whose only child it is."""
        return self._guard.pid

    def runs(self) -> bool:
        """Return True if its process is alive, even if it does not answer."""
        return self._guard.runs()

    def wait(self, seconds: float, ready: Callable[[], bool]) -> None:
        """Wait until it is ready.

        Raises:
            VllmServerError: it ended before, or took longer and was stopped.
        """
        if wait_ready(ready, self.runs, seconds):
            return
        if not self.runs():
            said = last_error(self.log, self._logged)
            raise VllmServerError(f"the vLLM server ended before it was ready: {said}; see {self.log}")
        self.stop()
        raise VllmServerError(
            f"the vLLM server was not ready after rollout.engine.startup_timeout={seconds:g} s and was "
            f"stopped: raise the timeout, or see {self.log}"
        )

    def stop(self) -> None:
        """End it and all its children: SIGTERM, then SIGKILL."""
        self._guard.stop()


def last_error(log: Path, start: int) -> str:
    """Last line of a log, from a place in it on, that names an error and not another line; else its last line."""
    with log.open("rb") as file:
        file.seek(start)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    named = [line for line in lines if not any(word in line for word in ELSEWHERE)]
    errors = [line for word in ("error:", "Error") for line in named if word in line]
    return " ".join(PREFIX.sub("", [*lines, *errors][-1]).split())[:300] if lines else "it wrote nothing"


def inherited() -> dict[str, str]:
    """Our environment without Prefect's part, which has the secret of its server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
