"""The model behind the endpoint: a package, loaded and asked by coevo's own code."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from coevo.tasks.package.agent import Agent, TurnRequest
from coevo.tasks.package.package import Package
from coevo.tasks.package.signature import ANY_SEED
from coevo.utilities.errors import CoevoError

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
