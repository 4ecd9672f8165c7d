"""Python functions as tools: JSON schemas from their type hints and docstrings, and a check of a call's arguments."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic_core import SchemaError

from coevo.envs.rows.user_functions import UserFunction, tool_function
from coevo.records.inert import encodable
from coevo.utilities.errors import ConfigError

ANSWER = "answer"
"""Tool that ends an episode with an answer."""
ANSWERING: Mapping[str, Any] = {
    "name": ANSWER,
    "description": "End the task with your answer.",
    "parameters": {
        "type": "object",
        "properties": {ANSWER: {"type": "string", "description": "The answer, and nothing else."}},
        "required": [ANSWER],
    },
}
NO_CALL = "this is no call of a tool"
PLAIN = (str, int, float, bool, NoneType, list, dict)
"""Types of an argument besides lists, mappings with text keys, choices and unions of these."""
_PARAMETER = re.compile(r"^\s*\*?(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")
_SECTION = re.compile(r"^\s*(?:Args|Arguments|Parameters):\s*$")


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class PythonTool:
    """A function that a policy may call.

    Attributes:
        name: its name.
        schema: JSON schema of the function, as ``Guide.tools`` holds it.
        arguments: checks the arguments of a call.
    """

    name: str
    schema: Mapping[str, Any]
    arguments: type[BaseModel]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call whose arguments fit its tool.

    Attributes:
        name: name of the tool.
        arguments: JSON values by name.
    """

    name: str
    arguments: Mapping[str, Any]


def python_tools(references: Sequence[str]) -> list[PythonTool]:
    """Tools of functions, in their order.

    Raises:
        ConfigError: a function cannot be a tool, two have the same name, or one is called ``answer``.
    """
    found = [python_tool("env.tools", reference, tool_function(reference)) for reference in references]
    check_names([tool.name for tool in found])
    return found


def check_names(names: Sequence[str]) -> None:
    """Check that tools can be told apart. Raises ``ConfigError``."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or ANSWER in names:
        raise ConfigError(f"env.tools: {twice or ANSWER!r} is taken by another tool: rename the function")


def read_call(action: str, tools: Mapping[str, PythonTool]) -> ToolCall | str:
    """Read an action as a call of a tool, or of ``answer``.

    Returns:
        the call, or why it is none, for the policy.
    """
    try:
        call = json.loads(action)
        name, arguments = call["name"], call["arguments"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return NO_CALL
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return NO_CALL
    return _answer(arguments) if name == ANSWER else _checked_call(name, arguments, tools)


def _answer(arguments: Mapping[str, Any]) -> ToolCall | str:
    text = arguments.get(ANSWER)
    return ToolCall(ANSWER, {ANSWER: encodable(text)}) if isinstance(text, str) else "answer: it takes a text, answer"


def _checked_call(name: str, arguments: Mapping[str, Any], tools: Mapping[str, PythonTool]) -> ToolCall | str:
    if name not in tools:
        return encodable(f"there is no tool {name[:60]!r}; there are {', '.join((*tools, ANSWER))}")
    try:
        checked = tools[name].arguments.model_validate(arguments).model_dump()
        text = json.dumps(checked, ensure_ascii=False, allow_nan=False)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        return encodable(f"{name}: {place[:60]}: {problem['msg'][:200]}")
    except (ValueError, RecursionError):
        return f"{name}: an argument is no value of JSON"
    return ToolCall(name, json.loads(encodable(text)))


def python_tool(setting: str, reference: str, function: UserFunction) -> PythonTool:
    """Tool of a function, or of a method of an instance.

    Args:
        setting: setting that names it, for messages.
        reference: ``package.module:function``, or ``package.module:Class.method``.
        function: the function.

    Raises:
        ConfigError: it has no docstring, or a parameter without a type of JSON.
    """
    place, name = f"{setting} = {reference!r}", reference.rpartition(":")[2].rpartition(".")[2]
    summary, described = _docstring(function)
    if not summary:
        raise ConfigError(f"{place}: it has no docstring: say in one what it does")
    fields: dict[str, Any] = {}
    for parameter, hint in _hints(place, function).items():
        default = inspect.signature(function).parameters[parameter].default
        needed = default is inspect.Parameter.empty
        description = described.get(parameter)
        fields[parameter] = (hint, Field(... if needed else default, description=description))
    try:
        arguments = create_model(f"{name}_arguments", __base__=_Arguments, **fields)
        parameters = arguments.model_json_schema()
        json.dumps(parameters, allow_nan=False)
    except (PydanticUserError, SchemaError, NameError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"{place}: no schema can be made of it: {reason}") from None
    return PythonTool(name, {"name": name, "description": summary, "parameters": _untitled(parameters)}, arguments)


def _hints(place: str, function: UserFunction) -> dict[str, Any]:
    """Type of each parameter."""
    try:
        parameters, hints = inspect.signature(function).parameters, get_type_hints(function)
    except (NameError, TypeError, ValueError) as error:
        raise ConfigError(f"{place}: its type hints cannot be read: {error}") from None
    for name, parameter in parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(f"{place}: {parameter} cannot be filled by name: name each parameter")
        if name.startswith("_") or not _is_json(hints.get(name, object)):
            raise ConfigError(
                f"{place}: the parameter {name} needs a type hint of str, int, float, bool, Literal, "
                "or of lists, dicts or unions of these, and a name without an underscore before it"
            )
    return {name: hints[name] for name in parameters}


def _is_json(hint: Any) -> bool:
    origin, inside = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return True
    if origin is Annotated:
        return isinstance(inside[1], str) and _is_json(inside[0])
    if origin is Literal:
        return all(isinstance(each, str | int | bool) for each in inside)
    if origin is dict:
        return inside[0] is str and _is_json(inside[1])
    return origin in (list, Union, UnionType) and all(map(_is_json, inside))


def _docstring(function: UserFunction) -> tuple[str, dict[str, str]]:
    """Text of a docstring before its first section, and the line of each parameter."""
    lines = (inspect.getdoc(function) or "").splitlines()
    begin = next((index for index, line in enumerate(lines) if re.match(r"^\s*[A-Z]\w+:\s*$", line)), len(lines))
    found, inside = dict[str, str](), False
    for line in lines[begin:]:
        if re.match(r"^[A-Z]\w+:\s*$", line):
            inside = _SECTION.match(line) is not None
        elif inside and (match := _PARAMETER.match(line)):
            found[match[1]] = match[2].strip()
    return " ".join(" ".join(lines[:begin]).split()), found


def _untitled(schema: Any) -> Any:
    """A schema without the titles that repeat its names."""
    if isinstance(schema, list):
        return [_untitled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _untitled(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
