"""A server process: its state, its health, and its end."""

from typing import Annotated

import psutil
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from coevo.utilities.errors import CoevoError
from coevo.utilities.local_http import answers
from coevo.utilities.processes import end_group

NO_HTTP = ""
"""Health path of a server that speaks no HTTP: it answers while it runs."""


class ServerError(CoevoError):
    """A server did not start; names its log."""


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Server:
    """A server that was started for a workspace.

    Attributes:
        name: unique name within the workspace.
        pid: id of its process, the leader of its process group.
        started: start time of the process, in seconds since 1970, since process ids are reused.
        port: port on 127.0.0.1.
        health: path that answers 200; empty for a server that speaks no HTTP.
        workspace: path of its workspace; empty until it is recorded.
        folder: inode of that directory, which a moved one keeps; 0 until it is recorded.
    """

    name: str
    pid: Annotated[int, Field(gt=1)]
    started: Annotated[float, Field(allow_inf_nan=False)]
    port: Annotated[int, Field(ge=1, le=65535)]
    health: Annotated[str, Field(pattern=r"^(/[\w/.-]*)?$")]
    workspace: str = ""
    folder: Annotated[int, Field(ge=0)] = 0

    @property
    def url(self) -> str:
        """Root URL of its pages."""
        return f"http://127.0.0.1:{self.port}"

    def runs(self) -> bool:
        """Return True if its process still runs."""
        try:
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and self._is(process)
        except psutil.Error:  # it has ended, or its number is that of another user's process by now
            return False

    def _is(self, process: psutil.Process) -> bool:
        """Compare also the command, which ends with the port: changing the clock changes all start times."""
        return bool(process.create_time() == self.started or process.cmdline()[-1:] == [str(self.port)])

    def answers(self) -> bool:
        """Return True if it takes requests."""
        return self.runs() if self.health == NO_HTTP else answers(self.url + self.health)

    def stop(self) -> None:
        """End its process group; nothing where it no longer runs."""
        end_group(self.pid, self.runs)
