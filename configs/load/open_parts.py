"""Parts of a run from other packages, imported and checked: the one place that does so.

Call it for a run that a user starts, or whose settings a user has confirmed, before anything of it is built.
"""

import json
from collections.abc import Iterator
from inspect import isabstract
from typing import Any

from pydantic import JsonValue, ValidationError

from coevo.configs.bank.admission_config import OutsideAdmissionConfig
from coevo.configs.bank.retrieval_config import OutsideRetrievalConfig
from coevo.configs.bank.writer import OutsideWriterConfig
from coevo.configs.base import Config
from coevo.configs.load.load import mistakes, validate
from coevo.configs.outside_part import OutsidePartConfig, Part, PartClass, build, outside_parts
from coevo.configs.run_config import RunConfig
from coevo.configs.schedule_config import OutsideScheduleConfig
from coevo.configs.update.advantage_config import OutsideAdvantageConfig
from coevo.configs.update.reward_config import OutsideRewardConfig
from coevo.utilities.errors import ConfigError, unknown
from coevo.utilities.part_registry import installed

KINDS: dict[str, type[OutsidePartConfig]] = {
    kind.setting: kind
    for kind in (
        OutsideAdmissionConfig,
        OutsideRetrievalConfig,
        OutsideWriterConfig,
        OutsideScheduleConfig,
        OutsideAdvantageConfig,
        OutsideRewardConfig,
    )
}
"""Settings of a part from another package, by the section that names it."""


def open_parts(config: RunConfig, *settings: str) -> None:
    """Import the parts of a run, check their options, and check again how all parts go together.

    Args:
        config: the run; ``python_path`` is on Python's path already.
        settings: sections whose parts are needed; none for all.

    Raises:
        ConfigError: a part cannot be imported, is of another kind, lacks a method or refuses its options, or parts do
            not go together.
    """
    parts = [part for part in outside_parts(config) if not settings or part.setting in settings]
    for part in parts:
        _open(part)
    if parts:
        validate(config.model_dump(mode="json"), source=config.recipe)


def open_part(setting: str, kind: str, **options: JsonValue) -> Any:
    """A part of your own, imported, checked and built as a run does it: for its tests, and to try it in a notebook.

    Args:
        setting: section of its kind, such as ``update.advantage``.
        kind: ``package.module:Class``, or the name under which an installed package registers it.
        options: its options.

    Raises:
        ConfigError: there is no such section, or the part cannot be imported, is of another kind, lacks a method or
            refuses its options.
    """
    if setting not in KINDS:
        raise ConfigError(unknown("section with parts", setting, KINDS, f"Choose one of {', '.join(KINDS)}"))
    try:
        part = KINDS[setting](type=kind, options=options)
    except ValidationError as error:
        raise ConfigError(f"{setting}: {mistakes(error, KINDS[setting])}") from None
    _open(part)
    return build(part)


def _open(part: OutsidePartConfig) -> None:
    found = _class_of(part)
    _check_statements(part, found)
    _check_options(part, found)
    part.keep(found)


def installed_parts() -> Iterator[tuple[str, str, str]]:
    """Section, name and ``package.module:Class`` of each part that installed packages register; nothing is imported."""
    for kind in KINDS.values():
        for name, reference in sorted(installed(kind.group).items()):
            yield kind.setting, name, reference


def _class_of(part: OutsidePartConfig) -> PartClass:
    """The class that a type names, of the kind of its section."""
    found, named = part.find(), f"{part.setting}.type = {part.type!r}"
    kind = f"coevo.{part.setting.rpartition('.')[2].capitalize()}Part"
    if not (isinstance(found, type) and issubclass(found, Part)):
        raise ConfigError(f"{named}: is no part; name a class derived from {kind}")
    if found.setting != part.setting:
        other = f"is a part of {found.setting}" if found.setting else "is of no kind"
        raise ConfigError(f"{named}: {other}; name a class derived from {kind}")
    if isabstract(found):
        raise ConfigError(f"{named}: it lacks {', '.join(sorted(found.__abstractmethods__))}; implement it")
    if not (isinstance(found.Config, type) and issubclass(found.Config, Config)):
        raise ConfigError(f"{named}: its Config is no class of settings; derive it from coevo.Config")
    return found


def _check_statements(part: OutsidePartConfig, found: PartClass) -> None:
    for name, kinds in part.stated.items():
        if not isinstance(said := getattr(found, name), kinds):
            possible = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
            raise ConfigError(f"{part.setting}.type = {part.type!r}: its {name} is {said!r}; make it {possible}")


def _check_options(part: OutsidePartConfig, found: PartClass) -> None:
    try:
        found.Config.model_validate_json(json.dumps(part.options))
    except ValidationError as error:
        raise ConfigError(f"{part.setting}.options: {mistakes(error, found.Config)}") from None
