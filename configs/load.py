"""Recipes: YAML files merged in the order of their ``defaults``, then ``key=value`` overrides, then validated.

A recipe names the files it builds on (``defaults: [envs/homerules, models/scratch, methods/coevo-rl]``); what it
sets itself wins over them, and the command line wins over both.
"""

import json
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import TypeAdapter, ValidationError
from yaml import YAMLError

from configs.env import EnvConfig
from configs.errors import ConfigError
from configs.run import RunConfig

ROOT = Path(__file__).parent


def names(kind: str) -> list[str]:
    """Names of the shipped files of one kind: ``recipes``, ``methods``, ``envs`` or ``models``."""
    return sorted(path.stem for path in (ROOT / kind).glob("*.yaml"))


def describe(kind: str, name: str) -> str:
    """What a shipped file says of itself: its leading comment, as one line."""
    lines = (ROOT / kind / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return " ".join(line.removeprefix("#").strip() for line in takewhile(lambda line: line.startswith("#"), lines))


def load_env(name: str, overrides: Sequence[str] = ()) -> EnvConfig:
    """The validated configuration of an environment by its type, its settings as ``key=value``.

    Raises:
        ConfigError: there is no such setting, or its value is not possible.
    """
    merged = OmegaConf.merge({"type": name}, *map(_override, overrides))
    try:
        return TypeAdapter(EnvConfig).validate_json(json.dumps(OmegaConf.to_container(merged)))
    except ValidationError as error:
        raise ConfigError(f"env: {_first(error)}") from None


def load_recipe(recipe: str, overrides: Sequence[str] = ()) -> RunConfig:
    """The validated configuration of a shipped recipe, or of a recipe file by path.

    Raises:
        ConfigError: the recipe is not there, is not YAML, or does not describe a possible run.
    """
    path = Path(recipe) if recipe.endswith((".yaml", ".yml")) else ROOT / "recipes" / f"{recipe}.yaml"
    if not path.is_file():
        raise ConfigError(
            f"recipe {recipe!r} is not there; choose one of {', '.join(names('recipes'))}, or give a .yaml file"
        )
    merged = OmegaConf.merge(_read(path), {"recipe": path.stem}, *map(_override, overrides))
    return validate(cast(dict[str, Any], OmegaConf.to_container(merged)), source=path.stem)


def validate(settings: dict[str, Any], source: str) -> RunConfig:
    """Check settings against the schema; the first mistake becomes a one-line ``ConfigError``."""
    try:
        return RunConfig.model_validate_json(json.dumps(settings))
    except ValidationError as error:
        raise ConfigError(f"{source}: {_first(error)}") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{source}: {error}") from None


def _read(path: Path) -> DictConfig:
    try:
        settings = OmegaConf.load(path)
    except (YAMLError, UnicodeDecodeError, OmegaConfBaseException) as error:
        raise ConfigError(f"{path}: not readable as YAML: {' '.join(str(error).split())}") from None
    except FileNotFoundError:
        raise ConfigError(f"{path}: named under 'defaults' but not there") from None
    if not isinstance(settings, DictConfig):
        raise ConfigError(f"{path}: a recipe is a mapping of keys to values")
    bases = [_read(ROOT / f"{base}.yaml") for base in settings.pop("defaults", [])]
    return cast(DictConfig, OmegaConf.merge(*bases, settings))


def _override(text: str) -> DictConfig:
    key, separator, _ = text.partition("=")
    if not separator or not key:
        raise ConfigError(f"{text!r}: an override is written key=value, for example seed=11")
    try:
        return OmegaConf.from_dotlist([text])
    except (YAMLError, OmegaConfBaseException) as error:
        raise ConfigError(f"{text!r}: not readable as key=value: {' '.join(str(error).split())}") from None


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{where}: {message}{more}".removeprefix(": ")
    if problem["type"] == "extra_forbidden":
        return f"{where}: no such key; see `coevo recipes` for those there are{more}"
    if problem["type"] == "union_tag_not_found":
        return f"{where}: say which kind it is with {where}.type{more}"
    return f"{where} = {json.dumps(problem['input'])[:80]}: {message}{more}"
