"""Settings that can start a program, reach a network or import code: a run from elsewhere is not believed in them.

Such a field carries ``Trusted`` where it is declared. A value that is the field's default is nobody's choice and needs
no confirmation. Nor may the configuration that a run keeps name a file to be read while it is checked: only what a user
writes may, and the content is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel, JsonValue, ValidationInfo
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

STORED = {"stored": True}
"""Context in which the configuration that a run keeps is validated."""


@dataclass(frozen=True, slots=True)
class Trusted:
    """Marks a field in its ``Annotated``.

    Attributes:
        does: what coevo does with the value, as in "coevo starts it".
    """

    does: str


class Setting(NamedTuple):
    """A value that somebody chose for a marked field."""

    name: str
    """Dotted, from the root of the configuration."""
    value: JsonValue
    """As JSON holds it."""
    does: str
    """The use that coevo makes of it, as in "starts it"."""


def chosen(config: BaseModel, prefix: str = "") -> Iterator[Setting]:
    """The values of marked fields that are not their defaults, in the order of the schema."""
    for name, field in type(config).model_fields.items():
        value, dotted = getattr(config, name), f"{prefix}{name}"
        if isinstance(value, BaseModel):
            yield from chosen(value, f"{dotted}.")
        mark = marked(field)
        if mark is not None and value != field.get_default(call_default_factory=True):
            yield Setting(dotted, to_jsonable_python(value), mark.does)


def marked(field: FieldInfo) -> Trusted | None:
    """The mark of a field; None where its value can do nothing."""
    return next((each for each in field.metadata if isinstance(each, Trusted)), None)


def is_stored(info: ValidationInfo[Any]) -> bool:
    """Return True if a validator checks the configuration that a run keeps, not one that a user writes."""
    return bool(info.context and info.context.get("stored"))
