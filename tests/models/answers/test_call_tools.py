"""Arguments of calls: their types come from the schema of the tool, and empty ones are none."""

import json

import pytest

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault

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


def ref(name):
    return {"$ref": f"#/$defs/{name}"}


DEFS = {
    "Word": TEXT, "Count": WHOLE, "Again": {"$ref": "#/$defs/Word"}, "Loop": {"$ref": "#/$defs/Loop"},
    "Both": {"allOf": [{"$ref": "#/$defs/Count"}]}, "a/b": WHOLE,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "schema, text, value",
    [
        (ref("Word"), "42", "42"), (ref("Again"), "42", "42"), (ref("Count"), "42", 42), (ref("Both"), "42", 42),
        (ref("Loop"), "42", 42), (ref("absent"), "42", 42), (ref("a~1b"), "42", 42), ({"$ref": "http://x/y"}, "42", 42),
        ({"allOf": [TEXT, {"minLength": 1}]}, "42", "42"), ({"allOf": [{"maximum": 9}, WHOLE]}, "42", 42),
        ({"allOf": [{"type": ["string", "integer"]}, TEXT]}, "42", "42"), ({"const": "1"}, "1", "1"),
        ({"const": 1}, "1", 1), ({"const": True}, "true", True), ({"const": None}, "null", None),
        ({"anyOf": [ref("Word"), {"type": "null"}]}, "42", "42"), ({"anyOf": [ref("Count"), ref("Word")]}, "42", 42),
        ({"oneOf": [{"const": "1"}, {"const": "2"}]}, "2", "2"), ({"oneOf": [{"allOf": [ref("Again")]}]}, "7", "7"),
        ({"anyOf": [ref("Loop"), TEXT]}, "7", "7"), ({"allOf": [ref("Word")], "description": "x"}, "[1]", "[1]"),
    ],
)  # fmt: skip
def test_references_and_parts_of_a_schema_are_followed(form, schema, text, value):
    parameters = {"$defs": DEFS, "properties": {"a": schema}}
    action = Reader(tools=({"name": "go", "parameters": parameters},)).read(FORMS[form].format(text)).action
    assert json.loads(action)["arguments"] == {"a": value}


@pytest.mark.parametrize(
    "parameters",
    [
        {"$defs": {"Go": {"properties": {"a": TEXT}, "required": ["a"]}}, "$ref": "#/$defs/Go"},
        {"definitions": {"Go": {"properties": {"a": TEXT}, "required": ["a"]}}, "$ref": "#/definitions/Go"},
        {"allOf": [{"properties": {"a": TEXT}}, {"required": ["a"]}]},
        {"allOf": [{"$ref": "#/$defs/Go"}, {"properties": {"b": TEXT}}],
         "$defs": {"Go": {"properties": {"a": TEXT}, "required": ["a"]}}},
        {"properties": {"a": {"$ref": "#/properties/b"}, "b": TEXT}, "required": ["a"]},
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_a_schema_of_arguments_may_refer_to_its_parts(form, parameters):
    reader = Reader(tools=({"name": "go", "parameters": parameters},))
    assert json.loads(reader.read(FORMS[form].format("42")).action)["arguments"] == {"a": "42"}
    assert reader.read('{"name": "go", "arguments": {"b": 1}}').fault == Fault.MISSING_ARGUMENT
    if "b" not in json.dumps(parameters):
        assert reader.read("Action: go\nAction Input: 42").action == '{"name": "go", "arguments": {"a": "42"}}'
