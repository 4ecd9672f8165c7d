"""Settings that can start a program, reach a network or import code. A run from elsewhere is not trusted with them.

Such a field is declared with ``Trusted``. A value that equals the field's default needs no confirmation, since no user
chose it. A stored configuration must not name a file to be read during validation: only a configuration that a user
writes may, and the file's content is stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel, JsonValue, ValidationInfo
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

STORED = {"stored": True}
"""Validation context of a stored configuration."""


@dataclass(frozen=True, slots=True)
class Trusted:
    """Mark of a field in its ``Annotated``.

    Attributes:
        does: use that coevo makes of the value, as in "coevo starts it".
    """

    does: str


class Setting(NamedTuple):
    """A chosen value of a marked field."""

    name: str
    """Dotted name, from the root of the configuration."""
    value: JsonValue
    """Value in JSON types."""
    does: str
    """Use that coevo makes of it, as in "starts it"."""


def chosen(config: BaseModel, prefix: str = "") -> Iterator[Setting]:
    """Values of marked fields that differ from their defaults, in the order of the schema."""
    for name, field in type(config).model_fields.items():
        value, dotted = getattr(config, name), f"{prefix}{name}"
        if isinstance(value, BaseModel):
            yield from chosen(value, f"{dotted}.")
        mark = marked(field)
        if mark is not None and value != field.get_default(call_default_factory=True):
            yield Setting(dotted, to_jsonable_python(value), mark.does)


def marked(field: FieldInfo) -> Trusted | None:
    """Mark of a field; None if it has none."""
    return next((each for each in field.metadata if isinstance(each, Trusted)), None)


def is_stored(info: ValidationInfo[Any]) -> bool:
    """Return True if a validator checks a stored configuration, not one that a user writes."""
    return bool(info.context and info.context.get("stored"))
