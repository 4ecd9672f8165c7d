"""Python functions as tools: their schemas, and calls whose arguments do not fit."""

import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.envs.base import flawed
from coevo.envs.rows.python_tools import ANSWERING, NO_CALL, ToolCall, python_tools, read_call
from coevo.utilities.errors import ConfigError

HERE = "support.row_functions:"


@cache
def tools():
    return {tool.name: tool for tool in python_tools([f"{HERE}add", f"{HERE}look"])}


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def test_hints_and_docstring_are_the_schema():
    assert tools()["add"].schema == {
        "name": "add",
        "description": "Add two numbers. Both are whole.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "the first."},
                "b": {"type": "integer", "default": 3, "description": "the second, more"},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    }
    assert tools()["look"].schema["parameters"]["properties"]["where"] == {"type": "string", "enum": ["here", "there"]}
    assert flawed([*(tool.schema for tool in tools().values()), ANSWERING]) is None


def test_a_call_that_fits_is_read():
    assert read_call(call("add", a=1), tools()) == ToolCall("add", {"a": 1, "b": 3})
    assert read_call(call("answer", answer="4"), tools()) == ToolCall("answer", {"answer": "4"})
    assert read_call('{"name": "answer", "arguments": {"answer": "\\ud800"}}', tools()).arguments == {"answer": "?"}
    deep = read_call(call("look", where="here", deep=[{"x": 1.5, "\ud800": None}]), tools())
    assert deep.arguments == {"where": "here", "deep": [{"x": 1.5, "?": None}]}


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ("add 1 2", NO_CALL),
        ("", NO_CALL),
        ("[" * 100_000, NO_CALL),
        ('{"name": "add", "arguments": {"a": ' + "9" * 5000 + "}}", NO_CALL),
        ('{"name": ["add"], "arguments": {}}', NO_CALL),
        (call("subtract", a=1), "there is no tool 'subtract'; there are add, look, answer"),
        (call("add"), "add: a: Field required"),
        (call("add", a="one"), "add: a: Input should be a valid integer, unable to parse string as an integer"),
        (call("add", a=1, c=2), "add: c: Extra inputs are not permitted"),
        (call("look", where="up"), "look: where: Input should be 'here' or 'there'"),
        ('{"name": "look", "arguments": {"where": "here", "deep": [{"x": 1e999}]}}', "finite number"),
        (call("answer", answer=4), "answer: it takes a text, answer"),
        (call("answer"), "answer: it takes a text, answer"),
    ],
    ids=lambda text: text[:20],
)
def test_a_call_that_does_not_fit_is_told_why(action, says):
    read = read_call(action, tools())
    assert isinstance(read, str)
    assert says in read


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(("add", "look", "answer")), st.dictionaries(st.sampled_from(("a", "b", "where", "answer")), JSON)
)
def test_any_arguments_are_a_call_or_a_reason(name, arguments):
    read = read_call(call(name, **arguments), tools())
    text = read if isinstance(read, str) else json.dumps(dict(read.arguments), ensure_ascii=False, allow_nan=False)
    text.encode()


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["undocumented"], "has no docstring: say in one what it does"),
        (["untyped"], "the parameter a needs a type hint"),
        (["strange"], "the parameter a needs a type hint"),
        (["many"], r"\*numbers: int cannot be filled by name"),
        (["answer"], "'answer' is taken by another tool"),
        (["add", "add"], "'add' is taken by another tool"),
        (["waits"], "a tool is a plain function: write it without async"),
        (["Fair"], "a type is no function"),
        (["nothing"], "support.row_functions has no nothing"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_one_line(names, says):
    with pytest.raises(ConfigError, match=says) as caught:
        python_tools([f"{HERE}{name}" for name in names])
    assert str(caught.value).startswith("env.tools")
    assert "\n" not in str(caught.value)
