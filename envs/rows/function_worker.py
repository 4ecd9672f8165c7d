"""Calls of users' functions in a worker process, which returns plain values.

A worker is a live episode of the stateful interface: a request is an action, a reply is an observation. Both are JSON.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from coevo.configs.rows_config import FunctionRewardConfig, JudgeRewardConfig
from coevo.envs.base import Step
from coevo.envs.failures import RAISED, described
from coevo.envs.rows.judge_reward import judge_of
from coevo.envs.rows.user_functions import reward_function, tool_function
from coevo.records.draws import Key
from coevo.records.task import Task

FOR_THE_AGENT = (ValueError, LookupError, ArithmeticError)
"""Exceptions of a tool that its arguments cause: the policy reads them, and the episode continues."""
Callee = FunctionRewardConfig | JudgeRewardConfig | str
"""A reward by its settings, or a tool by its reference."""
Items = Sequence[Sequence[Any]]
"""Arguments of each call."""


@dataclass(frozen=True)
class FunctionHost:
    """Source of workers for some functions.

    Attributes:
        callees: the functions, by number.
        keys: API key of each that is a judge, else empty: the fork server that workers come from has the environment
            of its own start.
    """

    callees: tuple[Callee, ...]
    keys: tuple[str, ...] = field(repr=False)

    def open(self, task: Task, key: Key) -> tuple["HostedFunctions", str]:
        """Start to host the functions."""
        return HostedFunctions(self.callees, self.keys), ""


class HostedFunctions:
    """Functions of one worker. It imports them when it starts, so that no time limit of a call counts imports."""

    def __init__(self, callees: Sequence[Callee], keys: Sequence[str]) -> None:
        self._calls = list(map(_call_of, callees, keys))

    async def act(self, action: str) -> Step[None]:
        """Carry out a request; the observation holds an outcome per item, see ``function_pool.CallOutcome``."""
        request = json.loads(action)
        outcomes = await self._calls[request["function"]](request["items"])
        return Step(None, json.dumps(outcomes), "", 0.0, done=False, success=False)

    def close(self) -> None:
        """Nothing is held."""


def _call_of(callee: Callee, key: str) -> Callable[[Items], Awaitable[list[dict[str, Any]]]]:
    if isinstance(callee, str):
        return _Tool(tool_function(callee)).call
    if isinstance(callee, JudgeRewardConfig):
        return _Together(judge_of(callee, key), callee.seconds).call
    function = reward_function(callee)
    if callee.call == "async":
        return _Together(function, callee.seconds).call
    return _Batched(function).call if callee.call == "batched" else _Plain(function).call


class _Plain:
    """A function that is called once per item; what it raises ends the request."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    async def call(self, items: Items) -> list[dict[str, Any]]:
        return [numbered(self._function(*item)) for item in items]


class _Batched:
    """A function that is called once for all items."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    async def call(self, items: Items) -> list[dict[str, Any]]:
        answers, rows = ([item[place] for item in items] for place in (0, 1))
        returned = self._function(answers, rows)
        values = _of_python(returned)
        if not isinstance(values, list | tuple) or len(values) != len(items):
            size = f" of {len(values)}" if isinstance(values, list | tuple) else ""
            raise TypeError(f"it returned a {type(returned).__name__}{size} for {len(items)} answers, not a list")
        return [numbered(value) for value in values]


class _Together:
    """A coroutine function whose calls are awaited together; each fails, and runs out of time, by itself."""

    def __init__(self, function: Callable[..., Awaitable[Any]], seconds: float) -> None:
        self._function, self._seconds = function, seconds

    async def call(self, items: Items) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*map(self._one, items)))

    async def _one(self, item: Sequence[Any]) -> dict[str, Any]:
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return numbered(await self._function(*item))
        except RAISED as error:
            if limit.expired():
                return {"error": f"no value in {self._seconds:g} s", "kind": "timeout"}
            return {"error": described(error), "kind": "exception"}


class _Tool:
    """A tool; it gets its arguments by name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    async def call(self, items: Items) -> list[dict[str, Any]]:
        return [self._answered(arguments) for (arguments,) in items]

    def _answered(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            returned = self._function(**arguments)
        except FOR_THE_AGENT as error:
            return {"refused": f"{type(error).__name__}: {error}"}
        return {"value": returned if isinstance(returned, str) else json.dumps(returned, ensure_ascii=False)}


def numbered(value: Any) -> dict[str, Any]:
    """Outcome of a call that should return a number; one of numpy or PyTorch is one too."""
    plain = _of_python(value)
    if isinstance(plain, Real):
        return {"value": float(plain)}
    return {"error": f"it returned {value!r:.60}, a {type(value).__name__}, not a number", "kind": "invalid"}


def _of_python(value: Any) -> Any:
    """A value of numpy or PyTorch as one of Python."""
    tolist = getattr(value, "tolist", None)
    return tolist() if callable(tolist) else value
