"""The model behind the endpoint: a package, loaded and asked by coevo's own code within the limits of a request."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from coevo.tasks.package.agent import Agent, TurnRequest
from coevo.tasks.package.package import Package
from coevo.tasks.package.pyfunc import ANY_SEED
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest request of an endpoint.

    Attributes:
        body: bytes of a request.
        rows: rows of a request.
        text: bytes of all text in a row, in UTF-8; a token takes at least one.
    """

    body: int
    rows: int
    text: int


DEFAULT = Limits(body=4 * 2**20, rows=256, text=64 * 2**10)


VERSION = version("mlflow")
"""Version of MLflow whose scoring server the endpoint answers like."""


class UnfitError(ValueError):
    """The agent cannot answer the request; the message gives the reason."""


class Model:
    """A packaged agent. Nothing of the package is imported or run.

    Args:
        directory: directory of a package.

    Raises:
        CoevoError: it is not a package, or its policy, bank or encoder cannot be read.
    """

    def __init__(self, directory: str) -> None:
        self._agent = Agent(Package(Path(directory)))
        self._lock = Lock()

    def predict(self, rows: Sequence[dict[str, Any]], params: dict[str, Any]) -> list[dict[str, Any]]:
        """One reply per row; one call at a time, since the engine has one set of buffers.

        Raises:
            UnfitError: the agent cannot write a prompt, with its reason.
        """
        seed, asked = params["seed"], [TurnRequest.of(row) for row in rows]
        with self._lock:
            try:
                replies = self._agent.answer(asked, self._agent.seed if seed == ANY_SEED else seed)
            except CoevoError as error:
                raise UnfitError(str(error)) from None
        return [reply.row() for reply in replies]
