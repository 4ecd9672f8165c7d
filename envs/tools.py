"""Tools that a guide declares: what prompts can show, and calls can be compared with."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from coevo.envs.failures import EpisodeFailure, attempted, invalid

_PARAMETERS = ("parameters", "inputSchema", "input_schema")
"""Names of the schema of a tool's arguments."""


def flawed(tools: Any) -> EpisodeFailure | None:
    """Loss for the first tool that is no JSON schema of a function, or None."""
    if not isinstance(tools, tuple | list):
        return invalid("list of tools", tools)
    return next((loss for tool in tools if (loss := _flaw(tool)) is not None), None)


def _flaw(tool: Any) -> EpisodeFailure | None:
    if not isinstance(attempted(partial(json.dumps, tool)), str):
        return invalid("JSON, as a tool has to be", tool)
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return invalid("tool with a name", tool)
    schema: Any = next((function[name] for name in _PARAMETERS if name in function), {})
    required = schema.get("required", []) if isinstance(schema, Mapping) else None
    if not isinstance(required, tuple | list) or not all(isinstance(name, str) for name in required):
        return invalid("schema with an object's parameters and the names of those required", schema)
    return None
