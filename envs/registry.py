"""Finding and building environments: by their registered name, or as ``package.module:Class``."""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isabstract, signature
from typing import Any

from configs.env import BabyAIConfig, EnvConfig, HomeRulesConfig
from configs.errors import ConfigError
from envs.base import Environment
from envs.homerules import HomeRules

GROUP = "coevo.envs"
"""Entry-point group that a package registers its environments under."""


_ADDED: dict[str, type[Environment[Any]]] = {}


def add(environment: type[Environment[Any]]) -> type[Environment[Any]]:
    """Make a class known by its ``name`` in this process; the class itself, so that it decorates.

    Other processes know it only as ``package.module:Class``, or by the entry point of a package.

    Raises:
        ConfigError: it is no environment, it lacks a method, or the name is another one's.
    """
    found = _checked(getattr(environment, "name", repr(environment)), environment)
    if found.name in _registered():
        raise ConfigError(f"env.type = {found.name!r}: is registered already; give the class another name")
    _ADDED[found.name] = found
    return found


def available() -> list[str]:
    """Names of the environments that are registered, sorted."""
    return sorted(_registered() | _ADDED)


def make(config: EnvConfig) -> Environment[Any]:
    """The environment that a configuration describes.

    Raises:
        ConfigError: the name is not registered, the module or class is not there, the class is no environment, or
            its constructor refuses the options.
    """
    if isinstance(config, HomeRulesConfig):
        return HomeRules(config.level, config.world, config.houses, config.extra_lessons)
    if isinstance(config, BabyAIConfig):
        return _built(config.type, config.model_dump(exclude={"type"}))
    return _built(config.type, config.options)


def _built(kind: str, options: Mapping[str, Any]) -> Environment[Any]:
    environment = find(kind)
    try:
        signature(environment).bind(**options)
        return environment(**options)
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"env.options = {options}: {kind} refuses them: {reason}") from error


def _registered() -> dict[str, str]:
    outside = {entry.name: f"{entry.module}:{entry.attr}" for entry in entry_points(group=GROUP)}
    return {**outside, HomeRules.name: "envs.homerules:HomeRules", "babyai": "envs.babyai:BabyAI"}


def find(kind: str) -> type[Environment[Any]]:
    """The class that a registered name, or ``package.module:Class``, stands for.

    Raises:
        ConfigError: the name is not registered, the module or class is not there, or the class is no environment.
    """
    if kind in _ADDED:
        return _ADDED[kind]
    registered = _registered()
    if ":" not in kind and kind not in registered:
        raise ConfigError(
            f"env.type = {kind!r}: no such environment; choose one of {', '.join(available())}, "
            "or write package.module:Class"
        )
    module, _, name = registered.get(kind, kind).partition(":")
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise ConfigError(f"env.type = {kind!r}: {module} cannot be imported ({error}); install its package") from error
    if found is None:
        raise ConfigError(f"env.type = {kind!r}: {module} has no {name}; name one of its classes")
    return _checked(kind, found)


def _checked(kind: str, found: object) -> type[Environment[Any]]:
    if not (isinstance(found, type) and issubclass(found, Environment)):
        raise ConfigError(f"env.type = {kind!r}: it is no environment; derive it from envs.base.Environment")
    if isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise ConfigError(f"env.type = {kind!r}: it lacks {missing}; implement them")
    return found
