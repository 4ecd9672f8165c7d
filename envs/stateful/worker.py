"""The program of a worker process: it hosts live episodes, and answers one request at a time.

A worker has no terminal, ignores Ctrl-C (its run closes it), and dies with its run, also where that is killed.
"""

import asyncio
import ctypes
import inspect
import json
import os
import signal
import sys
from collections.abc import Awaitable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from coevo.envs.base import Step
from coevo.envs.failures import RAISED, described
from coevo.envs.stateful.interface import Live, Simulator
from coevo.envs.stateful.wire import digest, encoded, plain
from coevo.records.draws import Key
from coevo.records.task import Task

T = TypeVar("T")
PR_SET_PDEATHSIG = 1
"""Option of Linux's ``prctl``: signal that a process gets when its parent ends."""


def serve(simulator: Simulator, connection: Connection) -> None:
    """Say that requests are read, answer them until the connection ends, then close all episodes."""
    _settle()
    host = Host(simulator)
    with suppress(EOFError, ConnectionError):
        connection.send_bytes(encoded({}))
        while True:
            request = json.loads(connection.recv_bytes())
            connection.send_bytes(host.answer(request))
    host.close(list(host.lives))


class Host:
    """Live episodes of one process, by number."""

    def __init__(self, simulator: Simulator) -> None:
        self.lives: dict[int, Live] = {}
        self._simulator = simulator
        self._loop = asyncio.new_event_loop()

    def answer(self, request: dict[str, Any]) -> bytes:
        """Carry out a request, and return the reply as JSON; an exception of the simulator is a reply, too."""
        try:
            return encoded(self._carried_out(request))
        except RAISED as error:
            return encoded({"error": described(error)})

    def close(self, numbers: list[int]) -> None:
        """Close episodes; one that fails to close does not keep the others."""
        for number in numbers:
            live = self.lives.pop(number, None)
            if live is not None:
                with suppress(*RAISED):
                    self._awaited(live.close())

    def _carried_out(self, request: dict[str, Any]) -> dict[str, Any]:
        if "task" in request:
            return self._start(request)
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


def _settle() -> None:
    """Become a process that nobody sees and that its parent's end ends."""
    os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
