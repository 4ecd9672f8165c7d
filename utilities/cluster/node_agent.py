"""The program of an actor: it hosts one part, and carries out calls of its methods. It imports nothing of Ray."""

import os
import pickle
import sys
from importlib import import_module
from typing import Any, NamedTuple

from coevo.utilities.errors import CoevoError


class AgentAnswer(NamedTuple):
    """Result of a call, or the line of a ``CoevoError`` that it raised."""

    value: Any
    error: str = ""


class NodeAgent:
    """Host of a part.

    Args:
        folders: folders that modules are imported from, behind those of the node.
    """

    def __init__(self, folders: list[str]) -> None:
        sys.path.extend(folder for folder in folders if folder not in sys.path)
        self._part: Any = None

    def host(self, part: str, arguments: bytes) -> AgentAnswer:
        """Make the part, and return this process's id. What an actor is created with would stay in Ray's metadata.

        Args:
            part: ``module:Class``.
            arguments: the pickled arguments of the class. Pickles are exchanged within a cluster alone.
        """
        module, _, name = part.partition(":")
        try:
            self._part = getattr(import_module(module), name)(*pickle.loads(arguments))
        except CoevoError as error:
            return AgentAnswer(0, str(error))
        except (ImportError, AttributeError) as error:
            return AgentAnswer(0, f"{type(error).__name__}: {error}: install what the run needs on this node, too")
        return AgentAnswer(os.getpid())

    def call(self, method: str, *arguments: Any) -> AgentAnswer:
        """Call a method of the part."""
        try:
            return AgentAnswer(getattr(self._part, method)(*arguments))
        except CoevoError as error:
            return AgentAnswer(None, str(error))
