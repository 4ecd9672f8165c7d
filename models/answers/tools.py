"""Tools that an environment offers, and whether a call fits one of them."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from coevo.models.answers.calls import Call
from coevo.models.answers.forms import call_text
from coevo.records.demonstration import Answer
from coevo.records.faults import Fault

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
        return call.arguments
    found: object = None
    with suppress(ValueError, RecursionError):
        found = json.loads(call.arguments, strict=False)
    if isinstance(found, dict):
        return found
    names = [*schema.get("required", ())] or [*schema.get("properties", ())]
    return {names[0]: call.arguments} if len(names) == 1 and call.arguments else {}
