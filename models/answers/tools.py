"""Tools that an environment offers, and whether a call fits one of them."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import NoneType, UnionType
from typing import Any

from coevo.models.answers.calls import Call
from coevo.models.answers.forms import call_text
from coevo.models.answers.spans import json_at
from coevo.records.demonstration import Answer
from coevo.records.faults import Fault

_SPELLED = {"True": "true", "False": "false", "None": "null"}
"""Values of JSON that Python writes differently."""
_KINDS: Mapping[str, type | UnionType] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "array": list,
    "object": dict,
    "null": NoneType,
}
"""Types of JSON schemas, without truth values, which Python counts as integers."""
_PARAMETERS = ("parameters", "inputSchema", "input_schema")
"""Names of the schema of a tool's arguments."""


def answer_of(call: Call, tools: Sequence[Mapping[str, Any]], thought: str) -> Answer:
    """Answer with a call, as the environment gets it.

    It has a fault instead if no tool has this name, or if an argument is missing or has no form in JSON.
    """
    known = schemas_of(tools)
    if call.name not in known:
        return Answer(thought, "", Fault.UNKNOWN_TOOL)
    schema = known[call.name]
    arguments = _arguments(call, schema)
    if any(name not in arguments for name in schema.get("required", ())):
        return Answer(thought, "", Fault.MISSING_ARGUMENT)
    try:
        return Answer(thought, call_text(call.name, arguments))
    except (TypeError, ValueError, RecursionError):
        return Answer(thought, "", Fault.MALFORMED_CALL)


def schemas_of(tools: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Schema of the arguments of each tool, by its name; empty where a tool has none."""
    return {str(each.get("name")): _schema(each) for each in map(_function, tools)}


def wrapped(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool within the object that the OpenAI interface puts around it, which chat templates read."""
    if _function(tool) is not tool:
        return tool
    named = {key: value for key, value in tool.items() if key not in (*_PARAMETERS, "type")}
    return {"type": "function", "function": named | {"parameters": _schema(tool)}}


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Description of a tool, also within the object that the OpenAI interface puts around it."""
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def _schema(function: Mapping[str, Any]) -> Mapping[str, Any]:
    found: object = next((function[key] for key in _PARAMETERS if key in function), None)
    return found if isinstance(found, Mapping) else {}


def _arguments(call: Call, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments by name; one text is JSON, or the only argument of the tool."""
    if not isinstance(call.arguments, str):
        return _typed(call.arguments, schema) if call.written else call.arguments
    found: object = None
    with suppress(ValueError, RecursionError):
        found = json.loads(call.arguments, strict=False)
    if isinstance(found, dict):
        return found
    names = [*schema.get("required", ())] or [*schema.get("properties", ())]
    return {names[0]: call.arguments} if len(names) == 1 and call.arguments else {}


def _typed(texts: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    return {name: _value(text, _types(known.get(name))) for name, text in texts.items()}


def _types(schema: object) -> set[str]:
    """Types that the schema of an argument admits; empty if it does not say."""
    if not isinstance(schema, Mapping):
        return set()
    named = schema.get("type")
    found = {str(each) for each in (named if isinstance(named, list | tuple) else [named]) if each is not None}
    choices = schema.get("enum")
    if not found and isinstance(choices, Sequence):
        found = set().union(*(_types_of(choice) for choice in choices))
    options = [each for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list) for each in schema[key]]
    return found.union(*map(_types, options))


def _value(text: str, types: set[str]) -> Any:
    """Value of a written argument: JSON of a type that the schema admits, else text if it admits text."""
    value = _of_json(_SPELLED.get(text, text))
    if not isinstance(value, str) and types & _types_of(value):
        return value
    return text if "string" in types else _of_json(text)


def _of_json(text: str) -> Any:
    """A number, truth value, list or object as JSON; any other text as it is."""
    found = json_at(text, 0) if text[:1] in '{["-0123456789tfn' else None
    return found[0] if found is not None and found[1] == len(text) else text


def _types_of(value: object) -> set[str]:
    """Types of JSON schemas that a value has."""
    return {name for name, kind in _KINDS.items() if isinstance(value, kind) and type(value) is not bool} or {"boolean"}
