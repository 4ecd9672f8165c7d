"""Registry of environments: finds and builds them by registered name, or as ``package.module:Class``."""

from collections.abc import Mapping
from inspect import isabstract, signature
from typing import Any

from coevo.configs.adapter_config import AdapterConfig
from coevo.configs.benchmark_config import BenchmarkConfig
from coevo.configs.env import EnvConfig, PluginEnvConfig
from coevo.configs.rows_config import RowsConfig
from coevo.configs.run_config import RunConfig
from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.base import Environment
from coevo.envs.shipped import GROUP, SHIPPED
from coevo.envs.stateful.stateful_environment import StatefulEnvironment
from coevo.utilities.errors import ConfigError, unknown
from coevo.utilities.part_registry import Registry

ENVIRONMENTS = Registry[type[Environment[Any]]](
    "env.type",
    {name: each.path for name, each in SHIPPED.items()},
    GROUP,
)
_ADDED: dict[str, type[Environment[Any]]] = {}


def add(environment: type[Environment[Any]]) -> type[Environment[Any]]:
    """Register a class under its ``name`` in this process and return it, for use as a decorator.

    Other processes know it only as ``package.module:Class``, or by the entry point of a package.

    Raises:
        ConfigError: it is not an environment, it lacks a method, or the name is taken.
    """
    found = _checked(getattr(environment, "name", repr(environment)), environment)
    if found.name in ENVIRONMENTS:
        raise ConfigError(f"env.type = {found.name!r}: already registered; give the class another name")
    _ADDED[found.name] = found
    return found


def available() -> list[str]:
    """Names of the registered environments, sorted."""
    return sorted({*ENVIRONMENTS.names(), *_ADDED})


def make(config: EnvConfig) -> Environment[Any]:
    """Build the environment that a configuration describes.

    Raises:
        ConfigError: the name is not registered, the module or class does not exist, the class is not an environment,
            or its constructor refuses the options.
    """
    if isinstance(config, RowsConfig | AdapterConfig | BenchmarkConfig):
        return _built(config.type, {"config": config})
    if not isinstance(config, PluginEnvConfig):
        return _built(config.type, config.model_dump(exclude={"type"}))
    environment = _built(config.type, config.options)
    if isinstance(environment, StatefulEnvironment):
        environment.simulator, environment.python = config.simulator, config.python
    elif config.simulator != SimulatorConfig() or config.python is not None:
        name = "python" if config.python is not None else "simulator"
        raise ConfigError(f"env.{name}: {config.type} runs in this process; leave env.{name} out")
    return environment


def _built(kind: str, options: Mapping[str, Any]) -> Environment[Any]:
    environment = find(kind)
    try:
        signature(environment).bind(**options)
        return environment(**options)
    except (TypeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"env.options = {options}: {kind} refuses them: {reason}") from error


def find(kind: str) -> type[Environment[Any]]:
    """Find the class of a registered name, or of ``package.module:Class``.

    Raises:
        ConfigError: the name is not registered, the module or class does not exist, or the class is not an environment.
    """
    if kind in _ADDED:
        return _ADDED[kind]
    if ":" in kind:
        return _checked(kind, ENVIRONMENTS.imported(kind, kind))
    if kind not in ENVIRONMENTS:
        remedy = "`coevo envs` lists them; a class of your own is package.module:Class"
        raise ConfigError(unknown("environment", kind, available(), remedy))
    return _checked(kind, ENVIRONMENTS.load(kind))


def with_panel(config: RunConfig) -> RunConfig:
    """The configuration with a panel to play: the environment's first where ``evaluation.panels`` names none.

    Raises:
        ConfigError: the environment does not exist, or has no panel.
    """
    if config.evaluation.panels:
        return config
    table = isinstance(config.env, RowsConfig | AdapterConfig | BenchmarkConfig)  # whose panels its settings decide
    panels = tuple((make(config.env) if table else find(config.env.type)).panels)[:1]
    if not panels:
        raise ConfigError(f"env.type = {config.env.type!r}: it has no panel to evaluate on: name one in `panels`")
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update={"panels": panels})})


def _checked(kind: str, found: object) -> type[Environment[Any]]:
    if not (isinstance(found, type) and issubclass(found, Environment)):
        raise ConfigError(f"env.type = {kind!r}: not an environment; derive it from coevo.Environment")
    if isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise ConfigError(f"env.type = {kind!r}: it lacks {missing}; implement them")
    return found
