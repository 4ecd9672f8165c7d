"""Environments of other libraries from Python: what a call names becomes the settings of an environment."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coevo.configs.adapter_config import (
    AdapterConfig,
    FactoryConfig,
    GymnasiumConfig,
    McpConfig,
    OpenEnvConfig,
    VerifiersConfig,
)
from coevo.configs.load.load import mistakes
from coevo.flows.from_rows import GivenEnvironment, folders_of, reference_of, stored
from coevo.utilities.errors import ConfigError

TaskRows = str | Path | Iterable[Mapping[str, Any]]
"""Rows as mappings, or the path of a table; see ``coevo.from_rows``."""
Function = str | Callable[..., Any]
"""A function or class, or its ``package.module:name``."""


def from_gymnasium(
    id: str,  # noqa: A002 - Gymnasium's own word
    *,
    words: Function | None = None,
    actions: Sequence[str] = (),
    **settings: Any,
) -> GivenEnvironment:
    """Make an environment of one that Gymnasium knows.

    Args:
        id: registered id, such as ``Taxi-v4``; ``module:Game-v0`` imports the module that registers it.
        words: function from an observation to a text, or ``ansi``; None for texts, and for few numbers.
        actions: names of discrete actions, in the order of their numbers.
        settings: further settings of ``env.type=gymnasium``, such as ``tasks``, ``steps`` and ``reward_range``.

    Returns:
        Environment for ``coevo.run(..., env=...)``.

    Raises:
        CoevoError: a setting is not valid, or other processes cannot import a function.
    """
    named = words if words is None or words == "ansi" else reference_of(words)
    given = {"id": id, "words": named, "actions": tuple(actions), **settings}
    return _made("from_gymnasium", GymnasiumConfig, given, id, None if named == "ansi" else words)


def from_factory(
    factory: Function,
    *,
    rows: TaskRows | None = None,
    reward: Function | Sequence[Function] = (),
    workspace: Path | str | None = None,
    **settings: Any,
) -> GivenEnvironment:
    """Make an environment of a class with TRL's protocol: ``reset``, public methods as tools, ``get_reward``.

    Args:
        factory: the class, or a function that returns an instance.
        rows: table of tasks, whose rows are arguments of ``reset``; None for ``reset(seed=...)``.
        reward: TRL's reward functions, called with ``prompts``, ``completions``, ``environments`` and the columns.
        workspace: directory of runs.
        settings: further settings of ``env.type=factory``, such as ``prompt``, ``steps`` and ``split``.

    Returns:
        Environment for ``coevo.run(..., env=...)``.

    Raises:
        CoevoError: the rows are no table, a setting is not valid, or other processes cannot import the class.
    """
    rewards = [reward] if isinstance(reward, str) or callable(reward) else list(reward)
    given = {"factory": reference_of(factory, classes=True), "reward": tuple(map(reference_of, rewards)), **settings}
    given = _with_rows(rows, given, workspace)
    return _made("from_factory", FactoryConfig, given, factory, *rewards)


def from_openenv(
    url: str, *, rows: TaskRows | None = None, workspace: Path | str | None = None, **settings: Any
) -> GivenEnvironment:
    """Make an environment of a server of OpenEnv.

    Args:
        url: its address, such as ``http://localhost:8000``.
        rows: table of tasks, whose rows are arguments of ``reset``; None for ``reset(seed=...)``.
        workspace: directory of runs.
        settings: further settings of ``env.type=openenv``, such as ``action``, ``observation`` and ``reward_range``.

    Returns:
        Environment for ``coevo.run(..., env=...)``.

    Raises:
        CoevoError: the rows are no table, or a setting is not valid.
    """
    return _made("from_openenv", OpenEnvConfig, _with_rows(rows, {"url": url, **settings}, workspace))


def from_mcp(
    server: str | Sequence[str],
    rows: TaskRows,
    reward: Function | Sequence[Function],
    *,
    workspace: Path | str | None = None,
    **settings: Any,
) -> GivenEnvironment:
    """Make an environment of the tools of an MCP server.

    Args:
        server: its address (streamable HTTP), or its command (standard streams).
        rows: table of tasks.
        reward: function ``f(answer, row)`` that returns a number, or several, which add up.
        workspace: directory of runs.
        settings: further settings of ``env.type=mcp``, such as ``tools``, ``prompt`` and ``key``.

    Returns:
        Environment for ``coevo.run(..., env=...)``.

    Raises:
        CoevoError: the rows are no table, a setting is not valid, or other processes cannot import a function.
    """
    rewards = [reward] if isinstance(reward, str) or callable(reward) else list(reward)
    named = {"url": server} if isinstance(server, str) else {"command": tuple(server)}
    given = {**named, "reward": tuple(map(reference_of, rewards)), **settings}
    return _made("from_mcp", McpConfig, _with_rows(rows, given, workspace), *rewards)


def from_verifiers(taskset: str, *, python: str | Path, **settings: Any) -> GivenEnvironment:
    """Make an environment of a taskset of verifiers (v1), which runs in an interpreter of its own.

    Args:
        taskset: ``package.module:Class``, or the id of an installed taskset.
        python: path of an interpreter that has verifiers.
        settings: further settings of ``env.type=verifiers``, such as ``options`` and ``tasks``.

    Returns:
        Environment for ``coevo.run(..., env=...)``.

    Raises:
        CoevoError: a setting is not valid.
    """
    given = {"taskset": taskset, "python": str(python), **settings}
    return _made("from_verifiers", VerifiersConfig, given, taskset)


def _with_rows(rows: TaskRows | None, given: dict[str, Any], workspace: Path | str | None) -> dict[str, Any]:
    """Settings with the table, which is kept in the workspace where it is no file."""
    if rows is not None and not isinstance(rows, str | Path):
        rows, given = stored(rows, given, workspace)
    return given if rows is None else {**given, "rows": str(rows)}


def _made(door: str, kind: type[AdapterConfig], given: Mapping[str, Any], *functions: Any) -> GivenEnvironment:
    """Environment of these settings; modules of ``functions`` can then be imported in other processes."""
    try:
        config = kind.model_validate_json(json.dumps(given))
    except ValidationError as error:
        raise ConfigError(f"{door}: {mistakes(error, kind)}") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{door}: a setting is no value of JSON: {error}") from None
    return GivenEnvironment(config, folders_of(*functions))
