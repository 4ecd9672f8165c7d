"""Calls in nearly JSON: read as they are meant or malformed, and never a text in place of the arguments."""

import json

import pytest

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
SEARCH = {"name": "search", "parameters": {"properties": {"term": TEXT, "n": WHOLE}, "required": ["term", "n"]}}
FIND = {"name": "find", "parameters": {"properties": {"term": TEXT}, "required": ["term"]}}
TOOLS = (SEARCH, FIND)
FORMS = {
    "label": "Thought: so\nAction: {name}\nAction Input: {text}",
    "one line": "Action: {name} {text}",
    "label, whole": "Action: {{'name': '{name}', 'arguments': {text}}}",
    "hermes": '<tool_call>\n{{"name": "{name}", "arguments": {text}}}\n</tool_call>',
    "hermes, quoted": "<tool_call>\n{{'name': '{name}', 'parameters': {text}}}\n</tool_call>",
    "name": "<tool_call>{name} {text}</tool_call>",
    "mistral": "[TOOL_CALLS]{name}{text}",
    "function": "<function={name}>{text}</function>",
    "kimi": "<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{text}<|tool_call_end|>",
    "line": "I search.\n{{'name': '{name}', 'arguments': {text}}}",
    "fence": '```json\n{{"name": "{name}", "arguments": {text}}}\n```',
}
READ = [
    "{'term': 'cup', 'n': 2}",
    '{"term": "cup", "n": 2,}',
    "{'term': 'cup', 'n': 2, }",
    '{\'term\': "cup", "n": 2}',
    '{"term": "cup", /* most */ "n": 2}',
    '{"term": "cup", "n": 2 // most\n}',
    '{"term": "cup", "n": 2 # most\n}',
    "{\n  'term': 'cup',\n  'n': 2\n}",
    "{'term': 'cup', 'n': 0x2}",
    "{'term': '\\x63up', 'n': +2}",
]
BROKEN = [
    '{"term": "cup", "n": 2', "{'term': 'cup', 'n': 2", '{"term": "cup, "n": 2}', "{term: cup, n: 2}", '{"term" "cup"}',
    "{'term': 'cup' 'n': 2}", '{"term": "a "cup" b", "n": 2}', '{"term": "cup", "n": }', "{'term': 'cup', 'n': 2]",
    '{"term": "cup"; "n": 2}', "{'term': '\\cup', 'n': 2}", "{'term': ('cup', 1), 'n': 2}",
]  # fmt: skip


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize("form", FORMS)
def test_arguments_in_nearly_json_are_read(form, text):
    answer = Reader(tools=TOOLS).read(FORMS[form].format(name="search", text=text))
    assert (json.loads(answer.action), answer.fault) == ({"name": "search", "arguments": {"term": "cup", "n": 2}}, "")


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("name", ["search", "find"])
@pytest.mark.parametrize("form", FORMS)
def test_arguments_that_only_resemble_json_are_malformed(form, name, text):
    answer = Reader(tools=TOOLS).read(FORMS[form].format(name=name, text=text))
    assert (answer.action, answer.fault) == ("", Fault.MALFORMED_CALL)


@pytest.mark.parametrize("text", ["{x for x in y}", "cup {a, b}", "[1, 2", "it's", "{", "a: {'b': 1}"])
def test_other_text_is_the_only_argument(text):
    answer = Reader(tools=TOOLS).read(f"Action: find\nAction Input: {text}")
    assert text == "{" or json.loads(answer.action)["arguments"] == {"term": text}


@pytest.mark.parametrize(
    "schema, text, value",
    [
        ({"type": "object"}, "{'x': 1}", {"x": 1}), ({"type": "array"}, "['x', True,]", ["x", True]),
        ({"type": "object"}, "{'x': 1", None), ({"type": "array"}, "['x'", None), (TEXT, "{'x': 1}", "{'x': 1}"),
        ({"type": ["object", "null"]}, "{x}", None), ({}, "{'x': 1}", {"x": 1}),
        ({}, "{x for x in y}", "{x for x in y}"),
        (WHOLE, "many", "many"),
    ],
)  # fmt: skip
def test_a_written_argument_may_be_nearly_json(schema, text, value):
    tool = {"name": "go", "parameters": {"properties": {"a": schema}}}
    said = f"<tool_call>\n<function=go>\n<parameter=a>\n{text}\n</parameter>\n</function>\n</tool_call>"
    answer = Reader(tools=(tool,)).read(said)
    assert (
        answer.fault == Fault.MALFORMED_CALL if value is None else json.loads(answer.action)["arguments"]["a"] == value
    )
