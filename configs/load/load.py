"""Recipes: YAML files merged in the order of their ``defaults``, then ``key=value`` overrides, then validated.

A recipe names the files it builds on (``defaults: [envs/homerules, models/scratch, methods/coevo-rl]``); what it
sets itself wins over them, and the command line wins over both. Where one of them gives a part another ``type``, the
settings that this type does not have are forgotten.

YAML text is bounded: an alias that refers to lists of aliases, or deep nesting, costs nothing to write.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from io import StringIO
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from yaml import MappingNode, YAMLError

from coevo.configs.env import EnvConfig
from coevo.configs.load.setting_place import fitted, located
from coevo.configs.load.shipped_files import names, shipped
from coevo.configs.outside_part import UNKNOWN
from coevo.configs.run_config import RunConfig
from coevo.configs.trust_settings import STORED
from coevo.utilities.errors import ConfigError, nearest, unknown

KINDS = ("envs", "models", "methods", "recipes")
"""Folders of the shipped files."""

VARIANTS = "variants"
"""Key of a method's file: settings that the method has with some models and environments, see ``pairing``."""

ALONE = 1000
"""Iterations of a method that sets none."""

MAX_VALUE_CHARS = 80
"""Most characters of a value in a message."""

MAX_MISTAKES = 5
"""Most mistakes of a recipe in a message; the others are counted."""


def load_env(name: str, overrides: Sequence[str] = ()) -> EnvConfig:
    """The validated configuration of an environment by its type, its settings as ``key=value``.

    Raises:
        ConfigError: there is no such setting, or its value is not possible.
    """
    merged = _merged({"type": name}, *map(_override, overrides))
    try:
        return TypeAdapter(EnvConfig).validate_json(json.dumps(merged))
    except ValidationError as error:
        raise ConfigError(f"env: {mistakes(error, EnvConfig)}") from None


def load_recipe(recipe: str, overrides: Sequence[str] = ()) -> RunConfig:
    """The validated configuration of a shipped recipe, or of a recipe file by path.

    Raises:
        ConfigError: the recipe is not there, is not YAML, or does not describe a possible run.
    """
    known = shipped("recipes")
    if not recipe.endswith((".yaml", ".yml")) and recipe not in known:
        raise ConfigError(unknown("recipe", recipe, known, "`coevo recipes` lists them; a file ends in .yaml"))
    path = known.get(recipe, Path(recipe))
    base = _part(path) if recipe in known else _read(path)
    return written(change(base | {"recipe": path.stem}, overrides), source=path.stem)


def load_method(name: str) -> RunConfig:
    """The validated configuration of a shipped method by itself, on the embedded household with a small policy.

    Raises:
        ConfigError: there is no such method.
    """
    if name not in names("methods"):
        raise ConfigError(unknown("method", name, names("methods"), "`coevo methods` lists them"))
    files = (("envs", "homerules"), ("models", "scratch"), ("methods", name))
    parts = (_part(shipped(kind)[each]) for kind, each in files)
    return validate(_merged({"recipe": name, "iterations": ALONE}, *parts), source=name)


def compose(
    bases: Sequence[str | Mapping[str, Any]], settings: Mapping[str, Any], overrides: Sequence[str], source: str
) -> RunConfig:
    """The validated configuration of settings over shipped files and recipes, as a user asks for it.

    Args:
        bases: shipped files such as ``envs/homerules``, shipped recipes such as ``recipes/homerules-react``, recipe
            files by path, or settings; later ones win.
        settings: what is set over them.
        overrides: settings as ``KEY=VALUE``, which win over all.
        source: name for messages.

    Raises:
        ConfigError: a file is not there, or the settings do not describe a possible run.
    """
    known = {f"{kind}/{name}": file for kind in KINDS for name, file in shipped(kind).items()}
    parts = (
        base if isinstance(base, Mapping) else _part(known[base]) if base in known else _read(Path(base))
        for base in bases
    )
    return written(change(reduce(_above, (*parts, settings), {"recipe": source}), overrides), source)


def change(settings: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Settings with some of them changed by ``key=value``, not yet validated.

    Raises:
        ConfigError: an override is not written so.
    """
    return _above(settings, _merged(*map(_override, overrides)))


def validate(settings: dict[str, Any], source: str) -> RunConfig:
    """Check settings that a run keeps against the schema; its mistakes become a one-line ``ConfigError``."""
    return _validated(settings, source, STORED)


def written(settings: dict[str, Any], source: str) -> RunConfig:
    """Check settings that a user wrote; paths in them may be relative to the working directory."""
    return _validated(settings, source, None)


def _validated(settings: dict[str, Any], source: str, context: object) -> RunConfig:
    try:
        return RunConfig.model_validate_json(json.dumps(settings), context=context)
    except ValidationError as error:
        raise ConfigError(f"{source}: {mistakes(error, RunConfig)}") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{source}: {_line(error)}") from None


def mapping_of(path: Path, what: str = "recipe") -> dict[str, Any]:
    """Mapping that a YAML file holds, as it is written; ``what`` is its kind, for messages.

    Raises:
        ConfigError: the file is not there, is not YAML or too large, or holds something else.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        text = path.read_text(encoding="utf-8-sig")
        root = check(text)
        if not isinstance(root, MappingNode | None):  # a text would be read as YAML once more
            raise SourceError(f"a {what} is a mapping of keys to values")
        return cast(dict[str, Any], OmegaConf.to_container(OmegaConf.load(StringIO(text))))
    except SourceError as error:
        raise ConfigError(f"{_shown(path)}: {_line(error)}") from None
    except (YAMLError, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(f"{_shown(path)}: not readable as YAML: {_line(error)}") from None
    except OSError as error:
        raise ConfigError(f"{_shown(path)}: {error.strerror}: name a {what} that is there, or a .yaml file") from None


def _read(path: Path) -> dict[str, Any]:
    settings = mapping_of(path)
    bases = [_part(base) for base in _bases(settings.pop("defaults", []), path)]
    return reduce(_above, (*bases, settings))


def shipped_settings(base: str) -> Mapping[str, Any]:
    """Settings of a shipped file such as ``models/scratch``, as it has them."""
    kind, _, name = base.partition("/")
    return _part(shipped(kind)[name])


def variants(method: str) -> Mapping[str, Mapping[str, Any]]:
    """Settings of a shipped method for some models (``pretrained``) and environments, by name."""
    return _with_variants(shipped("methods")[method])[1]


def _part(path: Path) -> dict[str, Any]:
    """Settings of a shipped file, without its variants; nobody may change them."""
    return _with_variants(path)[0]


@cache
def _with_variants(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Settings of a shipped file and its variants, read once in a process."""
    settings = _read(path)
    return settings, settings.pop(VARIANTS, {}) if path.parent.name == "methods" else {}


def _bases(bases: object, path: Path) -> list[Path]:
    """The files that a recipe builds on; shipped ones, each named by kind and name."""
    known = {f"{kind}/{name}": file for kind in KINDS for name, file in sorted(shipped(kind).items())}
    if not isinstance(bases, list):
        example = bases if isinstance(bases, str) and bases in known else "models/scratch"
        raise ConfigError(f"{_shown(path)}: defaults = {_shown(bases)}: write a list: defaults: [{example}]")
    for base in bases:
        if not isinstance(base, str) or base not in known:
            raise ConfigError(
                f"{_shown(path)}: defaults: {_shown(base)} cannot be built on.{nearest(str(base), known)} "
                f"List some of {_some(list(known))}"
            )
    return [known[base] for base in bases]


def _some(known: Sequence[str]) -> str:
    """Names for a message of one line: all of the parts, and how many recipes there are."""
    parts = [name for name in known if not name.startswith("recipes/")]
    return f"{', '.join(parts)}, or one of {len(known) - len(parts)} recipes (`coevo recipes`) as recipes/NAME"


def _override(text: str) -> dict[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ConfigError(f"{_shown(text)}: an override is written key=value, for example seed=11")
    if key != key.strip():
        raise ConfigError(f"{_shown(text)}: leave out the spaces around =: {_line(key)}={_line(value)}")
    if "[" in key or key.count(".") > MAX_DEPTH:
        raise ConfigError(f"{_shown(text)}: name a setting by its keys, as in env.level=2, and set a list as a whole")
    try:
        check(value)
        return cast(dict[str, Any], OmegaConf.to_container(OmegaConf.from_dotlist([text])))
    except (YAMLError, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(f"{_shown(text)}: not readable as key=value: {_line(error)}") from None


def _above(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Settings over others, which lose what a part's new ``type`` does not have."""
    return _merged(fitted(below, above, RunConfig), above)


def _merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merged at every level; of two other values the later one stays."""
    merged: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            below = merged.get(name)
            nested = isinstance(below, Mapping) and isinstance(value, Mapping)
            merged[name] = _merged(cast(Mapping[str, Any], below), value) if nested else value
    return merged


def mistakes(error: ValidationError, kind: Any) -> str:
    """Mistakes of a validation in one line, at most ``MAX_MISTAKES``: each setting, its value, and a possible one."""
    found = error.errors(include_url=False)  # a misspelt key is also a missing one: it comes first
    found.sort(key=lambda each: each["type"] != "extra_forbidden")
    left = len(found) - MAX_MISTAKES
    return "; ".join(_mistake(each, kind) for each in found[:MAX_MISTAKES]) + (
        f" (and {left} more)" if left > 0 else ""
    )


def _mistake(problem: ErrorDetails, kind: Any) -> str:
    setting = located(kind, problem["loc"])
    where = ".".join(_line(part) for part in setting.path)
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{where}: {message}".removeprefix(": ")
    if problem["type"] == "extra_forbidden":
        return f"{where}: no such key{setting.others()}"
    if problem["type"] in (UNKNOWN, "union_tag_invalid"):
        tags = problem["ctx"]
        return f"{where}.type = {_shown(tags['tag'])}: choose one of {tags['expected_tags']}"
    if problem["type"] == "union_tag_not_found":
        return f"{where}: say which kind it is with {where}.type"
    if problem["type"] == "missing":
        remedy = "set it, or build on a shipped recipe with defaults" if kind is RunConfig else "set it"
        return f"{where}: is missing; {remedy}"
    return f"{where} = {json.dumps(problem['input'])[:MAX_VALUE_CHARS]}: {message}"


def _shown(value: object) -> str:
    """A value on one line, shortened."""
    text = repr(str(value) if isinstance(value, Path) else value)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}..."


def _line(value: object) -> str:
    """Text on one line, shortened; control characters are left out, and the setting that an error is about is first."""
    if setting := getattr(value, "full_key", None):  # of an exception of OmegaConf
        value = f"{setting}: {str(value).partition('full_key:')[0]}"
    line = " ".join("".join(each if each.isprintable() else " " for each in str(value)).split())
    return line if len(line) <= 4 * MAX_VALUE_CHARS else f"{line[: 4 * MAX_VALUE_CHARS]}..."


MAX_BYTES = 32 * 2**10
"""Most bytes of a configuration file."""

MAX_VALUES = 5000
"""Most values in it, each alias counted as what it stands for."""

MAX_DEPTH = 20
"""Most levels of nesting."""

MAX_CHARS = 1000
"""Most characters of a key or value."""

MISSING = "???"
"""Value that OmegaConf passes over."""

TAGS = ("null", "bool", "int", "float", "str", "timestamp", "seq", "map", "merge", "value")
"""Tags of permitted values; a date is read as text."""


class SourceError(ValueError):
    """Text that is not taken for YAML: names the line and what would be right."""


def check(text: str) -> Any:
    """Make sure that a YAML text may be constructed.

    Returns:
        its root node; None for an empty text.

    Raises:
        SourceError: it is no YAML, or too large, too deep or unprintable.
    """
    if len(text) > MAX_BYTES:
        raise SourceError(f"has more than {MAX_BYTES} characters: keep to what the schema has")
    _check_printable(text)
    try:
        _check_depth(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise SourceError(f"not readable as YAML: {error}") from None
    _size(root, 0)
    return root


def _check_printable(text: str) -> None:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.rstrip("\r").replace("\t", " ").isprintable():
            raise SourceError(f"line {number}: holds an unprintable character: remove it")


def _check_depth(text: str) -> None:
    """Before it is composed, which takes a call a level."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _at(event, f"is nested more than {MAX_DEPTH} levels deep: write it flatter")


def _size(node: Any, depth: int) -> int:
    """Values below a node; it stops at the first bound, so that an alias bomb costs no more than a large file."""
    if depth > MAX_DEPTH:
        raise _at(node, f"is nested more than {MAX_DEPTH} levels deep, or contains itself: write it out, flatter")
    if node is not None and node.tag.removeprefix("tag:yaml.org,2002:") not in TAGS:
        raise _at(node, f"has the tag {node.tag[-MAX_CHARS:]}: write a plain value")
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node)
    size = 1
    for child in _children(node):
        size += _size(child, depth + 1)
        if size > MAX_VALUES:
            raise _at(node, f"holds more than {MAX_VALUES} values: write fewer, or without aliases")
    return size


def _children(node: Any) -> list[Any]:
    if not isinstance(node, yaml.MappingNode):
        return node.value if isinstance(node, yaml.SequenceNode) else []
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag.rpartition(":")[2] not in ("str", "merge", "value"):
            raise _at(key, "has a key that is no text: write the name of a setting")
    return [part for pair in node.value for part in pair]


def _check_scalar(node: Any) -> None:
    if len(node.value) > MAX_CHARS:
        raise _at(node, f"is longer than {MAX_CHARS} characters: shorten it")
    if not node.value.replace("\n", "").isprintable():
        raise _at(node, "holds an unprintable character: remove it")
    if node.value == MISSING:
        raise _at(node, f"has {MISSING} in place of a value: write one, or leave the key out")


def _at(node: Any, problem: str) -> SourceError:
    return SourceError(f"line {node.start_mark.line + 1}: {problem}")
