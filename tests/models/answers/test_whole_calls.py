"""Calls whose values hold the marks around them: read whole or malformed, and never cut."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.call_forms import ELEMENTS, OBJECTS, PYTHON

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault

TEXT = {"type": "string"}
TOOLS = ({"name": "go", "parameters": {"properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}},)
FORMS = ELEMENTS | OBJECTS | PYTHON
MARKS = [
    "<parameter=a>", "</parameter>", "<parameter=x>", "<function=go>", "</function>", "<tool_call>", "</tool_call>",
    '<invoke name="go">', '<parameter name="a">', "</invoke>", "</function_calls>",
    "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "[TOOL_CALLS]", "<think>", "</think>", "<|im_end|>",
    "</s>",
    "<|python_end|>", "<tool_response>", "<action>go</action>", "<answer>x</answer>", "```", "```json", "'", '"',
    "\\", "\n",
    "{", "}", "[", "]", "(", ")", "#", "//", ", ", ": ", "x", "from=", "true", "Action: go", "\nAction: go",
    "Observation: y",
    "\nObservation: y", "\nResult: y", "<b>", "None", "go(a='x')", '{"name": "go", "arguments": {"a": "y"}}',
]  # fmt: skip
"""Parts of values: marks of all forms, and what labels, observations and quotes look like."""
DOCUMENTED = [
    "Use <parameter=a>x</parameter> here",
    "close it with </parameter> alone",
    "end with </function>",
    "end with </invoke>",
    "</parameter>\n</function>\n</tool_call> and on",
    "<tool_call>\n<function=go>\n<parameter=a>\ny\n</parameter>\n</function>\n</tool_call>",
    "<arg_key>a</arg_key><arg_value>y</arg_value>",
    "write </arg_value>",
    "</arg_value>\n</tool_call> and on",
    '<a href="x">y</a>\n<!-- <tool_call> -->',
    "re.sub('</?think>', '', text)  # no <think>",
    '<tool_call>\n{"name": "go", "arguments": {"a": "y"}}\n</tool_call>',
]


def read(text):
    return Reader(tools=TOOLS).read(text)


def judge(form, arguments):
    """True if a call is read whole; fails if it is read in part, or has another fault than a malformed call's."""
    answer = read(FORMS[form](arguments))
    if answer.fault == Fault.MALFORMED_CALL:
        return False
    assert json.loads(answer.action) == {"name": "go", "arguments": arguments}
    return True


@pytest.mark.parametrize("value", DOCUMENTED)
@pytest.mark.parametrize("form", FORMS)
def test_a_text_about_calls_is_whole_or_malformed(form, value):
    whole = judge(form, {"a": value}), judge(form, {"a": "so", "b": value})
    assert form in ELEMENTS or whole == (True, True)


@pytest.mark.parametrize("value", [*DOCUMENTED[:4], *DOCUMENTED[5:8], *DOCUMENTED[9:]])
@pytest.mark.parametrize("form", ELEMENTS)
def test_tags_in_the_only_value_are_read_whole(form, value):
    assert judge(form, {"a": value})


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(arguments=st.dictionaries(
    st.sampled_from("ab"), st.lists(st.sampled_from(MARKS), min_size=1, max_size=4).map("".join), min_size=1
))  # fmt: skip
def test_any_marks_in_values_are_whole_or_malformed(form, arguments):
    arguments.setdefault("a", "x")
    assert judge(form, arguments) or form in ELEMENTS


@pytest.mark.parametrize("form", ELEMENTS)
def test_an_argument_that_the_tool_lacks_shows_that_a_value_was_cut(form):
    values = {
        "qwen coder": "x\n</parameter>\n<parameter=c>\ny",
        "glm": "x</arg_value>\n<arg_key>c</arg_key>\n<arg_value>y",
        "claude": 'x</parameter>\n<parameter name="c">y',
    }
    assert not judge(form, {"a": values[form]})


def test_a_call_in_the_value_of_a_call_is_not_executed():
    inner = '<tool_call>{"name": "go", "arguments": {"a": "y"}}</tool_call>'
    assert read(f"<tool_call>\n<function=go>\n<parameter=a>\n{inner}").fault == Fault.MALFORMED_CALL
    assert judge("qwen coder", {"a": inner})


RESIDUE = ["x", '"b": "y"', "}", "]", ")", "and more", "<b>", ", b", '{"b"', "'", "=1", "\n}"]
WHOLE = {
    "hermes": ["<tool_call>{}", '{"name": "go", "arguments": {"a": "x"}}', "{}</tool_call>"],
    "phi": ["<|tool_call|>", '[{"name": "go", "arguments": {"a": "x"}}]', "{}<|/tool_call|>"],
    "mistral": ["[TOOL_CALLS]go", '{"a": "x"}', "{}"],  # without an end of its own: prose may follow in the next line
    "kimi": ["<|tool_call_begin|>functions.go:0", '<|tool_call_argument_begin|>{"a": "x"}', "{}<|tool_call_end|>"],
    "deepseek": ["<｜tool▁call▁begin｜>go", '<｜tool▁sep｜>{"a": "x"}', "{}<｜tool▁call▁end｜>"],
    "function": ["<function=go>{}", '{"a": "x"}', "{}</function>"],
    "no arguments": ["<tool_call><function=other>{}", "", "</function></tool_call>"],
    "parameters": ["<tool_call><function=go>{}", "<parameter=a>x</parameter>", "{}</function>{}</tool_call>"],
    "pairs": ["<tool_call>go{}", "<arg_key>a</arg_key>{}<arg_value>x</arg_value>", "{}</tool_call>"],
    "python": ["<tool_call>{}go", "(a='x')", "{}</tool_call>"],
    "tool code": ["```tool_code\n", "go(a='x')", "{}\n```"],
}
"""Parts of calls, with ``{}`` where no text may stand."""


def broken(parts, residue):
    """The call once for each place, with the residue there."""
    count = sum(part.count("{}") for part in parts)
    for chosen in range(count):
        texts, number = [], 0
        for part in parts:
            pieces = part.split("{}")
            for piece in pieces[:-1]:
                texts += [piece, residue if number == chosen else ""]
                number += 1
            texts.append(pieces[-1])
        yield "".join(texts)


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize("residue", RESIDUE)
def test_residue_makes_a_call_malformed(form, residue):
    tools = (*TOOLS, {"name": "other"})
    lines = () if form == "mistral" else broken(WHOLE[form], f"\n{residue}")
    for said in (*broken(WHOLE[form], residue), *lines):
        for each in (said, f"{said}\nI hope this works."):
            assert Reader(tools=tools).read(each).fault in (Fault.MALFORMED_CALL, Fault.UNKNOWN_TOOL), each


@pytest.mark.parametrize("form", WHOLE)
def test_without_residue_the_same_calls_are_read(form):
    said = "".join(WHOLE[form]).replace("{}", "\n" if form != "function" else "")
    assert Reader(tools=(*TOOLS, {"name": "other"})).read(said).action


@pytest.mark.parametrize(
    "said",
    [
        "<tool_call><function=go><parameter=a>x</function></tool_call>",
        "<tool_call><function=go><parameter a>x</parameter></function></tool_call>",
        "<tool_call><function=go>a=x</function></tool_call>",
        "<tool_call>go\n<arg_key>a</arg_key>\n<arg_value>x\n</tool_call>",
        "<tool_call>go\n<arg_key>a\n<arg_value>x</arg_value>\n</tool_call>",
        "<tool_call><function=go><parameter=a>x</parameter><parameter=a>y</parameter></function></tool_call>",
        '<tool_call>{"name": "go"} {"a": "x"}</tool_call>',
        "<tool_call>go(a='x')(b='y')</tool_call>",
    ],
)
def test_a_broken_call_does_not_run_without_its_arguments(said):
    assert read(said).fault == Fault.MALFORMED_CALL
