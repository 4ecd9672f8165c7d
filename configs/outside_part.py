"""Parts of a run from other packages: how a configuration names one, and what is known of it before it is imported.

A built-in part has a configuration class of its own. A part from outside is a class of another package, with
``options`` that its own ``Config`` checks. Reading a configuration imports nothing: ``coevo.configs.load.open_parts``
imports the parts of a run that a user has started or confirmed, and only what it has opened can be built.
"""

import json
import re
from abc import ABC
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BaseModel, Field, GetCoreSchemaHandler, JsonValue, ValidationInfo
from pydantic_core import PydanticCustomError, core_schema

from coevo.configs import base
from coevo.configs.trust_settings import Trusted, is_stored
from coevo.utilities.errors import ConfigError, nearest
from coevo.utilities.part_registry import Registry, installed

PATTERN = r"^[A-Za-z_][\w.+\-]*(:[A-Za-z_]\w*)?$"
OUTSIDE = "outside"
"""Tag of a part from outside in the union of its section."""
UNKNOWN = "unknown_part"
"""Kind of the error for a type that is neither built in nor installed."""


class Part(ABC):  # noqa: B024  (each kind has a method of its own)
    """Base of the classes for parts of your own, one for each kind, such as ``AdvantagePart``.

    Attributes:
        setting: section of the configuration that names the part, such as ``update.advantage``.
        Config: class of its options; the default has none.
        config: its options, checked.
    """

    setting: ClassVar[str] = ""
    Config: ClassVar[type[base.Config]] = base.Config

    def __init__(self, config: Any) -> None:
        self.config = config


PartClass = type[Part]

_opened: dict[tuple[str, str], PartClass] = {}
"""Classes that this process has imported and checked, by section and type."""


class OutsidePartConfig(base.Config):
    """Settings of a part from another package; each section has a class of its own, the last one of its union.

    Attributes:
        setting: the section, such as ``update.advantage``.
        group: entry-point group of its parts, such as ``coevo.advantages``.
        stated: what the part's class says of itself, by name, with the types of a possible value.
    """

    setting: ClassVar[str]
    group: ClassVar[str]
    stated: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    type: Annotated[str, Trusted("imports it")] = Field(pattern=PATTERN)
    """Name that an installed package registers under the section's entry-point group, or ``package.module:Class``."""
    options: Annotated[dict[str, JsonValue], Trusted("passes them to that code")] = Field(default_factory=dict)
    """Settings of the part, checked by its own ``Config``."""

    @property
    def is_open(self) -> bool:
        """True if this process has imported and checked the part."""
        return (self.setting, self.type) in _opened

    def states(self, name: str) -> Any:
        """Statement of the part's class about itself; None as long as nobody has opened it."""
        return getattr(_opened[self.setting, self.type], name) if self.is_open else None

    def defines(self, method: str) -> bool | None:
        """True if the part's class has a method; None as long as nobody has opened it."""
        return hasattr(_opened[self.setting, self.type], method) if self.is_open else None

    def find(self) -> object:
        """Import what the type names, unchecked.

        Raises:
            ConfigError: no installed package has a part of this name, or its module cannot be imported.
        """
        registry = Registry[object](f"{self.setting}.type", {}, self.group)
        if ":" in self.type:
            return registry.imported(self.type, self.type)
        if self.type not in registry:
            raise ConfigError(
                f"{self.setting}.type = {self.type!r}: no installed package has this part: install the one that "
                "registers it, or write package.module:Class"
            )
        return registry.load(self.type)

    def keep(self, found: PartClass) -> None:
        """Let this process build parts of a checked class."""
        _opened[self.setting, self.type] = found


def checked_options(config: OutsidePartConfig) -> base.Config:
    """Options of an open part, with the defaults of its ``Config``."""
    return _opened[config.setting, config.type].Config.model_validate_json(json.dumps(config.options))


def summary(config: OutsidePartConfig) -> str:
    """First line of the docstring of an open part's class; empty without one."""
    return (_opened[config.setting, config.type].__doc__ or "").strip().partition("\n")[0]


def build(config: OutsidePartConfig, *context: object) -> Any:
    """The part of a configuration, with its options.

    Args:
        config: names the part.
        context: further arguments of its constructor.

    Raises:
        ConfigError: this process has not opened it, or its constructor refuses the options.
    """
    named, found = f"{config.setting}.type = {config.type!r}", _opened.get((config.setting, config.type))
    if found is None:
        raise ConfigError(
            f"{named}: comes from another package, which is loaded only by a command that plays or trains: use "
            "`coevo run`, `coevo resume`, `coevo evaluate` or `coevo serve`"
        )
    try:
        return found(checked_options(config), *context)
    except (TypeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{named}: refuses options={config.options}: {reason}") from error


def outside_parts(config: BaseModel) -> Iterator[OutsidePartConfig]:
    """Parts from other packages in a configuration, in the order of the schema."""
    if isinstance(config, OutsidePartConfig):
        yield config
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            yield from outside_parts(value)


class PartChoice:
    """Mark of a union of configurations in its ``Annotated``: built-in ones by their ``type``, else the last one.

    What a user writes needs a colon or an installed entry point, so that a misspelt type is refused. A stored run may
    have a part that is not installed here.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        *built_in, outside = get_args(source)
        choices: dict[Any, core_schema.CoreSchema] = {
            name: handler.generate_schema(kind)
            for kind in built_in
            for name in get_args(kind.model_fields["type"].annotation)
        }
        names = tuple(choices)

        def check(value: Any, info: ValidationInfo[Any]) -> Any:
            if isinstance(value, dict) and not is_stored(info):
                _check_known(value.get("type"), names, outside.group)
            return value

        def tag(value: Any) -> Any:
            kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
            return OUTSIDE if kind is not None and kind not in names else kind

        checked = core_schema.with_info_before_validator_function(check, handler.generate_schema(outside))
        return core_schema.tagged_union_schema(choices | {OUTSIDE: checked}, tag)


def _check_known(kind: object, names: tuple[str, ...], group: str) -> None:
    if not isinstance(kind, str) or (":" in kind and re.fullmatch(PATTERN, kind)):
        return
    there = installed(group)
    if kind in there:
        return
    known = [*names, *sorted(there.keys() - set(names))]
    possible = f"{', '.join(map(repr, known))}, or write package.module:Class.{nearest(kind, known)}".removesuffix(".")
    raise PydanticCustomError(UNKNOWN, "choose one of {expected_tags}", {"tag": kind, "expected_tags": possible})
