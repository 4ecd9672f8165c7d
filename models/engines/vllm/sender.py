"""Ways for weights to a server: files that it reads itself, or a process that sends them by vLLM's weight transfer."""

import json
import select
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from coevo.models.engines.vllm.client import Client, UnreachableError
from coevo.models.engines.vllm.server import last_error


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


class Files:
    """The server reads the files itself, under the same path."""

    def deliver(self, client: Client, directory: Path) -> None:
        """As in ``Delivery``."""
        client.post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(directory)}})

    def close(self) -> None:
        """As in ``Delivery``."""


FILES = Files()


@dataclass(frozen=True)
class Sending:
    """How to start a sender.

    Attributes:
        command: of the process (``coevo_sender.py``).
        environment: all its variables.
        log: file that its errors are appended to.
        timeout: seconds for one delivery, the start of the process included.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    timeout: float


class Sender:
    """A process in vLLM's environment sends the weights; it starts at once and ends with this one, however that ends.

    A sender that fails is ended, and the next delivery starts another: what a broken transfer leaves is not used again.

    Args:
        sending: how to start it.
    """

    def __init__(self, sending: Sending) -> None:
        self._sending = sending
        self._logged = 0
        self._process: subprocess.Popen[bytes] | None = self._start()

    def deliver(self, client: Client, directory: Path) -> None:
        """As in ``Delivery``."""
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
        try:
            request = {"url": client.url, "address": _address_towards(client.url), "directory": str(directory)}
            self._ask(self._process, json.dumps(request).encode() + b"\n", str(directory).encode() + b"\n")
        except OSError as error:
            self.close()
            raise UnreachableError(
                f"the weights were not sent to the vLLM server at {client.url} ({error}): "
                f"{last_error(self._sending.log, self._logged)}; see {self._sending.log}"
            ) from None

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process.communicate()
        self._process = None

    def _ask(self, process: subprocess.Popen[bytes], request: bytes, expected: bytes) -> None:
        """Send a request, and wait for the reply. Raises ``OSError`` without it."""
        assert process.stdin
        assert process.stdout
        process.stdin.write(request)
        process.stdin.flush()
        if not select.select([process.stdout], [], [], self._sending.timeout)[0]:
            raise TimeoutError(f"no answer in rollout.engine.startup_timeout={self._sending.timeout:g} s")
        if process.stdout.readline() != expected:
            raise BrokenPipeError("the sender has ended")

    def _start(self) -> subprocess.Popen[bytes]:
        log = self._sending.log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self._logged = errors.tell()
            return subprocess.Popen(
                self._sending.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._sending.environment,
                start_new_session=True,
            )


def _address_towards(url: str) -> str:
    """Address of this machine that a server sees."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 80)) as connection:
        return str(connection.getsockname()[0])
