"""The program of a worker process: it hosts live episodes, and answers one request at a time.

A worker has no terminal, and ignores Ctrl-C, since its run closes it. Guards end it with its run, however that ends.
"""

import asyncio
import inspect
import json
import os
import pickle
from collections.abc import Awaitable
from contextlib import suppress
from socket import socket
from typing import Any, TypeVar

from coevo.envs.base import Step
from coevo.envs.failures import described
from coevo.envs.stateful.interface import Described, Live, Simulator
from coevo.envs.stateful.wire import digest, encoded, plain
from coevo.records.draws import Key
from coevo.records.task import Task
from coevo.utilities.process_guard import guarded

T = TypeVar("T")


def serve(simulator: bytes, connection: socket, owner: int) -> None:
    """Answer requests until the connection ends, then close all episodes.

    Args:
        simulator: the pickled simulator.
        connection: carries one request and one answer at a time, each a line of JSON.
        owner: id of the process at its other end.
    """
    guarded(connection.fileno(), owner)
    answer_requests(pickle.loads(simulator), connection)


def answer_requests(simulator: Simulator, connection: socket) -> None:
    """Answer requests in this process, as ``serve`` does."""
    host, worker = Host(simulator), os.getpid()
    _hide()
    with suppress(ConnectionError), connection.makefile("rb") as requests:
        for line in requests:
            if line.endswith(b"\n"):
                answer = host.answer(json.loads(line))
                if os.getpid() != worker:  # a fork that the simulator made and that came back, as its worker did
                    os._exit(0)
                connection.sendall(answer + b"\n")
    host.close(list(host.lives))


class Host:
    """Live episodes of one process, by number."""

    def __init__(self, simulator: Simulator) -> None:
        self.lives: dict[int, Live] = {}
        self._simulator = simulator
        self._loop = asyncio.new_event_loop()

    def answer(self, request: dict[str, Any]) -> bytes:
        """Carry out a request, and return the reply as JSON; an exception of the simulator is a reply, too.

        Every exception is the simulator's own here, also a panic of Rust code, which is no ``Exception``.
        """
        try:
            return encoded(self._carried_out(request))
        except BaseException as error:  # noqa: BLE001 - the other episodes of this worker live on
            return encoded({"error": described(error)})

    def close(self, numbers: list[int]) -> None:
        """Close episodes; one that fails to close does not keep the others."""
        for number in numbers:
            live = self.lives.pop(number, None)
            if live is not None:
                with suppress(BaseException):
                    self._awaited(live.close())

    def _carried_out(self, request: dict[str, Any]) -> dict[str, Any]:
        if "task" in request:
            return self._start(request)
        if "facts" in request:
            return {"facts": self._awaited(self._simulator.facts())} if isinstance(self._simulator, Described) else {}
        if "action" in request:
            return {"step": self._act(request["number"], request["action"])}
        self.close(request["numbers"])
        return {}

    def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Open an episode and play its actions."""
        task, key = Task(**request["task"]), Key(tuple(request["key"]))
        live, observation = self._awaited(self._simulator.open(task, key))
        self.lives[request["number"]] = live
        trace = digest("", observation)
        for action in request["actions"]:
            trace = digest(trace, self._act(request["number"], action))
        return {"observation": observation, "trace": trace}

    def _act(self, number: int, action: str) -> dict[str, Any] | None:
        """The step as plain values; None for anything that is no step."""
        step = self._awaited(self.lives[number].act(action))
        return plain(step) if isinstance(step, Step) else None

    def _awaited(self, result: T | Awaitable[T]) -> T:
        """Result of a method of a simulator, also where it is a coroutine."""
        return self._loop.run_until_complete(result) if inspect.isawaitable(result) else result


def _hide() -> None:
    """Read nothing from a terminal, and write nothing to it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
