"""Functions that a user names as ``package.module:function``: rewards and tools, imported and checked."""

import inspect
from collections.abc import Callable
from typing import Any

from coevo.configs.rows_config import FunctionRewardConfig
from coevo.utilities.errors import ConfigError
from coevo.utilities.part_registry import Registry

UserFunction = Callable[..., Any]
REWARDS = Registry[UserFunction]("env.reward", {})
TOOLS = Registry[UserFunction]("env.tools", {})
WANTED = {
    "plain": "def f(answer, row) -> float",
    "async": "async def f(answer, row) -> float",
    "batched": "def f(answers, rows) -> list[float]",
}


def reward_function(config: FunctionRewardConfig) -> UserFunction:
    """The function of a reward.

    Raises:
        ConfigError: it cannot be imported, is no function, or is not called as the settings say.
    """
    function = _function(REWARDS, "env.reward", config.function)
    wanted, is_async = WANTED[config.call], inspect.iscoroutinefunction(function)
    if is_async != (config.call == "async"):
        remedy = "set call: async" if is_async else f"write it with async def, or set call: {_other(config.call)}"
        raise ConfigError(f"env.reward = {config.function!r}: call={config.call} takes {wanted}: {remedy}")
    try:
        inspect.signature(function).bind("", {})
    except (TypeError, ValueError):
        raise ConfigError(f"env.reward = {config.function!r}: it does not take two arguments: write {wanted}") from None
    return function


def tool_function(reference: str) -> UserFunction:
    """The function of a tool.

    Raises:
        ConfigError: it cannot be imported, is no function, or is a coroutine function.
    """
    function = _function(TOOLS, "env.tools", reference)
    if inspect.iscoroutinefunction(function):
        raise ConfigError(f"env.tools = {reference!r}: a tool is a plain function: write it without async")
    return function


def _other(call: str) -> str:
    return "plain" if call == "async" else call


def _function(registry: Registry[UserFunction], setting: str, reference: str) -> UserFunction:
    found = registry.imported(reference, reference)
    if not inspect.isroutine(found):
        raise ConfigError(f"{setting} = {reference!r}: a {type(found).__name__} is no function: name one")
    return found
