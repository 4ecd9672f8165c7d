"""Arguments of calls: their types come from the schema of the tool, and empty ones are none."""

import json

import pytest

from coevo.models.answers.read import Reader
from coevo.records.faults import Fault

FORMS = {
    "qwen coder": "<tool_call>\n<function=go>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>go\n<arg_key>a</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
}
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NUMBER = {"type": "number"}
TRUTH = {"type": "boolean"}
LIST = {"type": "array", "items": TEXT}
NAMELESS = {"anyOf": [TEXT, {"type": "null"}]}


def tools(schema):
    return ({"name": "go", "parameters": {"properties": {"a": schema}}},)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "schema, text, value",
    [
        (TEXT, "42", "42"), (TEXT, "true", "true"), (TEXT, "[1]", "[1]"), (TEXT, '"q"', '"q"'), (TEXT, "null", "null"),
        (WHOLE, "42", 42), (WHOLE, "many", "many"), (NUMBER, "4.5", 4.5), (NUMBER, "4", 4),
        (TRUTH, "true", True), (TRUTH, "False", False), (LIST, '["x"]', ["x"]),
        (NAMELESS, "42", "42"), (NAMELESS, "null", None),
        ({"type": ["string", "integer"]}, "42", 42), ({"type": ["string", "integer"]}, "true", "true"),
        ({"enum": ["1", "2"]}, "1", "1"), ({"enum": [1, 2]}, "1", 1), ({"type": {}}, "42", 42),
        ({}, "42", 42), ({}, "True", "True"), ({}, "Rome", "Rome"),
    ],
)  # fmt: skip
def test_a_written_argument_has_the_type_of_its_schema(form, schema, text, value):
    action = Reader(tools=tools(schema)).read(FORMS[form].format(text)).action
    assert json.loads(action) == {"name": "go", "arguments": {"a": value}}


def test_a_written_argument_without_a_schema_is_json_or_text():
    said = FORMS["glm"].format("42")
    assert '"a": 42' in Reader(tools=({"name": "go"},)).read(said).action
    assert '"a": 42' in Reader(tools=({"name": "go", "parameters": {"properties": None}},)).read(said).action


@pytest.mark.parametrize("empty", ["null", "[]", "{}", '""'])
def test_empty_arguments_are_none(empty):
    said = f'{{"name": "go", "arguments": {empty}}}'
    assert Reader(tools=tools(TEXT)).read(said).action == '{"name": "go", "arguments": {}}'


@pytest.mark.parametrize("text", ['go("abc")', "go[abc]", "go abc", "walk to the hall"])
def test_text_where_calls_are_taken_is_no_unknown_tool(text):
    assert Reader(tools=tools(TEXT)).read(f"Action: {text}").fault == Fault.NOT_A_CALL
    assert Reader(tools=tools(TEXT)).read("Action: fly").fault == Fault.UNKNOWN_TOOL


def test_a_tool_may_have_a_name_of_two_words():
    offered = ({"name": "go north"},)
    assert Reader(tools=offered).read("Action: go north").action == '{"name": "go north", "arguments": {}}'
