"""Tools that an environment offers, and whether a call fits one of them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from coevo.models.answers.calls import Call
from coevo.models.answers.forms import call_text
from coevo.models.answers.tool_schema import Schema, types_of
from coevo.records.answer_faults import Fault
from coevo.records.demonstration import Answer
from coevo.records.lenient import value_at

_SPELLED = {"True": "true", "False": "false", "None": "null"}
"""Values of JSON that Python writes differently."""
_FIRST = frozenset('{["-0123456789tfn')
"""First characters of JSON."""
_NEARLY = re.compile(r"\{\s*(?:[\"']|\}|\w+\s*:|//|/\*|#|\Z)")
"""Beginning of what was meant as a JSON object."""
_UNREADABLE = object()
_NAMESPACE = "functions."
"""Namespace in which OpenAI's models see the tools."""
_PARAMETERS = ("parameters", "inputSchema", "input_schema")
"""Names of the schema of a tool's arguments."""


def answer_of(call: Call, tools: Sequence[Mapping[str, Any]], thought: str) -> Answer:
    """Answer with a call, as the environment gets it.

    It has a fault instead if no tool has this name, or if an argument is missing, is unreadable or has no form in JSON.
    """
    known = schemas_of(tools)
    name = call.name if call.name in known else call.name.removeprefix(_NAMESPACE)
    if name not in known:
        return Answer(thought, "", Fault.UNKNOWN_TOOL)
    schema = known[name]
    arguments = _arguments(call, schema)
    if arguments is None:
        return Answer(thought, "", Fault.MALFORMED_CALL)
    if any(name not in arguments for name in schema.required):
        return Answer(thought, "", Fault.MISSING_ARGUMENT)
    try:
        return Answer(thought, call_text(name, arguments))
    except (TypeError, ValueError, RecursionError):
        return Answer(thought, "", Fault.MALFORMED_CALL)


def schemas_of(tools: Sequence[Mapping[str, Any]]) -> dict[str, Schema]:
    """Schema of the arguments of each tool, by its name; it admits everything where a tool has none."""
    return {str(each.get("name")): Schema(_schema(each)) for each in map(_function, tools)}


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


def _arguments(call: Call, schema: Schema) -> Mapping[str, Any] | None:
    """Arguments by name; one text is JSON, or the only argument of the tool. None for what only resembles JSON."""
    if not isinstance(call.arguments, str):
        return _typed(call.arguments, schema) if call.written else call.arguments
    found = value_at(text := call.arguments.strip(), 0)
    if found is not None and isinstance(found[0], dict) and found[1] == len(text):
        return found[0]
    if _NEARLY.match(text):
        return None
    names = schema.required or list(schema.properties)
    return {names[0]: call.arguments} if len(names) == 1 and call.arguments else {}


def _typed(texts: Mapping[str, str], schema: Schema) -> dict[str, Any] | None:
    """Written arguments with the types of their schemas; None if the tool lacks one, or if one only resembles JSON.

    A name that the tool lacks shows that a value held the tags around it.
    """
    if schema.is_closed and not schema.properties.keys() >= texts.keys():
        return None
    values = {name: _value(text, schema.types(name)) for name, text in texts.items()}
    return None if _UNREADABLE in values.values() else values


def _value(text: str, types: set[str]) -> Any:
    """Value of a written argument: JSON of a type that the schema admits, else text if it admits text."""
    value = _of_json(_SPELLED.get(text, text))
    if not isinstance(value, str) and types & types_of(value):
        return value
    if "string" in types:
        return text
    value = _of_json(text)
    is_nearly = isinstance(value, str) and types & {"array", "object"} and text.lstrip()[:1] in ("{", "[")
    return _UNREADABLE if is_nearly else value


def _of_json(text: str) -> Any:
    """A number, truth value, list or object as JSON; any other text as it is."""
    found = value_at(text, 0) if text[:1] in _FIRST else None
    return found[0] if found is not None and found[1] == len(text) else text
