"""JSON schema of a tool's arguments: their names, those required, and the types that each admits.

References within the schema are followed, and ``allOf`` is read as one schema with the fields of all.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import NoneType, UnionType
from typing import Any
from urllib.parse import unquote

_KINDS: Mapping[str, type | UnionType] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "array": list,
    "object": dict,
    "null": NoneType,
}
"""Types of JSON schemas, without truth values, which Python counts as integers."""
_MAX_SCHEMAS = 64
"""Maximum number of schemas that are joined for one value: references may lead in a circle."""


def types_of(value: object) -> set[str]:
    """Types of JSON schemas that a value has."""
    return {name for name, kind in _KINDS.items() if isinstance(value, kind) and type(value) is not bool} or {"boolean"}


class Schema:
    """Schema of a tool's arguments; what is no JSON schema admits everything."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._parts = list(self._joined(root))

    @property
    def required(self) -> list[str]:
        """Names of the arguments that a call has to have."""
        listed = [each.get("required") for each in self._parts]
        return list(dict.fromkeys(str(name) for names in listed if isinstance(names, list | tuple) for name in names))

    @cached_property
    def properties(self) -> dict[str, Any]:
        """Schema of each argument."""
        every = [each.get("properties") for each in self._parts]
        return {str(name): each for found in every if isinstance(found, Mapping) for name, each in found.items()}

    @property
    def is_closed(self) -> bool:
        """True if the schema names its arguments, and does not say that there may be others."""
        return bool(self.properties) and not any(each.get("additionalProperties") for each in self._parts)

    def choices(self, name: str) -> list[object]:
        """Values that an argument is limited to; empty if it is not."""
        for each in self._joined(self.properties.get(name)):
            listed = [each["const"]] if "const" in each else each.get("enum")
            if isinstance(listed, list | tuple) and listed:
                return list(listed)
        return []

    def types(self, name: str) -> set[str]:
        """Types that an argument admits; empty if the schema does not say."""
        return self._types(self.properties.get(name), frozenset())

    def _types(self, schema: object, above: frozenset[int]) -> set[str]:
        """Types that all parts of a schema admit; those of one that says nothing are not counted."""
        joined = (each for each in self._joined(schema) if id(each) not in above)
        found = [types for each in joined if (types := self._own(each, above | {id(each)}))]
        return set.intersection(*found) or set.union(*found) if found else set()

    def _own(self, schema: Mapping[str, Any], above: frozenset[int]) -> set[str]:
        named = schema.get("type")
        types = {str(each) for each in (named if isinstance(named, list | tuple) else [named]) if each is not None}
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if not types and isinstance(choices, Sequence):
            types = set().union(*map(types_of, choices))
        keys = [key for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list | tuple)]
        options = [each for key in keys for each in schema[key]]
        return types.union(*(self._types(each, above) for each in options))

    def _joined(self, schema: object) -> Iterator[Mapping[str, Any]]:
        """A schema, those that it refers to, and those of its ``allOf``."""
        waiting, seen = [schema], list[int]()
        while waiting and len(seen) < _MAX_SCHEMAS:
            each = waiting.pop(0)
            if not isinstance(each, Mapping) or id(each) in seen:
                continue
            seen.append(id(each))
            yield each
            parts = each.get("allOf")
            waiting += [self._at(each.get("$ref")), *(parts if isinstance(parts, list | tuple) else ())]

    def _at(self, reference: object) -> object:
        """Schema that a reference such as ``#/$defs/Name`` leads to; None if it leads nowhere in this schema."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found: object = self._root
        for key in reference.lstrip("#").split("/")[1:]:
            name = unquote(key).replace("~1", "/").replace("~0", "~")
            found = _child(found, name)
        return found


def _child(value: object, name: str) -> object:
    if isinstance(value, Mapping):
        return value.get(name)
    is_index = isinstance(value, list | tuple) and name.isdecimal() and int(name) < len(value)
    return value[int(name)] if is_index else None  # type: ignore[index]
