"""The model behind the endpoint: a package, loaded and asked by coevo's own code."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from coevo.configs.load.open_parts import open_parts
from coevo.configs.outside_part import outside_parts
from coevo.lineage.trust import extend_path
from coevo.tasks.package.agent import Agent, TurnRequest
from coevo.tasks.package.package import Package
from coevo.tasks.package.signature import ANY_SEED
from coevo.utilities.errors import CoevoError

RETRIEVAL = "bank.retrieval"
"""The only part of a run that its agent needs."""
VERSION = version("mlflow")
"""Version of MLflow whose scoring server the endpoint answers like."""


class UnfitError(ValueError):
    """The agent cannot answer the request; the message gives the reason."""


class Model:
    """A packaged agent. Nothing of the package is imported or run.

    Args:
        directory: directory of a package. A user has confirmed the settings of its run, of which a retrieval from
            another package is imported.

    Raises:
        CoevoError: it is not a package, or its policy, bank, encoder or retrieval cannot be read.
    """

    def __init__(self, directory: str) -> None:
        package = Package(Path(directory))
        if any(part.setting == RETRIEVAL for part in outside_parts(package.config)):
            extend_path(package.config)
            open_parts(package.config, RETRIEVAL)
        self._agent = Agent(package)
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
