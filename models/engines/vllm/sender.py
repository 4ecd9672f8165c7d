"""Ways for weights to a server: files that it reads itself, or a process that sends them by vLLM's weight transfer."""

import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from coevo.models.engines.vllm.server_client import Client, UnreachableError
from coevo.utilities.processes import HERE, Launch, ServerProcess, last_error, size_of

WITHHELD = ("PREFECT_",)
"""Prefixes of our variables that vLLM's processes do not get: Prefect's have the secret of its server."""


class Delivery(Protocol):
    """Way for full weights to one server."""

    def deliver(self, client: Client, directory: Path) -> None:
        """Load the safetensors files of a directory into the server.

        Raises:
            UnreachableError: they did not arrive.
        """
        ...

    def close(self) -> None:
        """End what was started for it."""
        ...


class FileDelivery:
    """The server reads the files itself, under the same path."""

    def deliver(self, client: Client, directory: Path) -> None:
        """As in ``Delivery``."""
        client.post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(directory)}})

    def close(self) -> None:
        """As in ``Delivery``."""


FILES = FileDelivery()


class Sender:
    """A process in vLLM's environment sends the weights; it starts when needed, and ends with this one.

    A sender that fails is ended, and another one started: what a broken transfer leaves is not used again.

    Args:
        command: of the process (``coevo_sender.py``).
        variables: of its environment, in addition to our own.
        log: file that its errors are appended to.
        timeout: seconds for one delivery, the start of the process included.
    """

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], log: Path, timeout: float) -> None:
        self._timeout = timeout
        self._launch = Launch(command, variables, log, append=True, leash=True, replies=True, withheld=WITHHELD)
        self._process: ServerProcess | None = None
        self._logged = 0

    def deliver(self, client: Client, directory: Path) -> None:
        """As in ``Delivery``."""
        used = self._process is not None and self._process.runs()
        try:
            self._ask(client.url, str(directory))
        except BrokenPipeError as error:
            self.close()
            if used:  # the server may have been restarted since, and knows nothing of the old sender
                self.deliver(client, directory)
                return
            raise UnreachableError(
                f"the weights were not sent to the vLLM server at {client.url} ({error}): "
                f"{last_error(self._launch.log, self._logged)}; see {self._launch.log}"
            ) from None
        except OSError as error:
            self.close()
            raise UnreachableError(
                f"the weights were not sent to the vLLM server at {client.url} ({error}); see {self._launch.log}"
            ) from None

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.close()
        self._process = None

    def _ask(self, url: str, directory: str) -> None:
        """Send a request, and wait for the reply. Raises ``OSError`` without it."""
        request = {"url": url, "address": _address_towards(url, self._timeout), "directory": directory}
        process = self._running()
        process.write(json.dumps(request).encode() + b"\n")
        reply = process.line(self._timeout)
        if reply is None:
            raise TimeoutError(f"no answer in rollout.engine.startup_timeout={self._timeout:g} s")
        if reply != directory.encode() + b"\n":
            raise BrokenPipeError(
                "the sender answered otherwise than with the directory" if reply else "the sender has ended"
            )

    def _running(self) -> ServerProcess:
        if self._process and self._process.runs():
            return self._process
        self.close()
        self._logged = size_of(self._launch.log)
        self._process = HERE.start(self._launch)
        return self._process


def _address_towards(url: str, timeout: float) -> str:
    """Address of this machine that a server sees."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 80), timeout) as connection:
        return str(connection.getsockname()[0])
