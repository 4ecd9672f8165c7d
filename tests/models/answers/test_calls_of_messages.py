# ruff: noqa: E501  (members are read best many in a line)
"""Calls as messages and completions of servers have them, without marks, behind labels, and before invented rounds."""

import json

import pytest

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault
from coevo.records.answer_form import CallForm

TEXT = {"type": "string"}
TOOLS = (
    {
        "name": "search",
        "parameters": {"properties": {"query": TEXT, "most": {"type": "integer"}}, "required": ["query"]},
    },
    {"name": "finish", "parameters": {"properties": {}}},
)
CUP = {"name": "search", "arguments": {"query": "cup"}}
CALL, FINISH = json.dumps(CUP), '<tool_call>\n{"name": "finish", "arguments": {}}\n</tool_call>'
UNMARKED = (
    f'{{"tool_calls": [{CALL}]}}', f'{{"thought": "x", "tool_call": {CALL}}}', f'{{"function_call": {CALL}}}',
    f'{{"role": "assistant", "content": null, "tool_calls": [{{"type": "function", "function": {CALL}}}]}}',
    'search{"query": "cup"}', 'search {"query": "cup"}', 'functions.search:0{"query": "cup"}', "search{'query': 'cup'}",
    f"```json\n{{\"tool_calls\": [{CALL}]}}\n```", '{"name": "functions.search", "arguments": {"query": "cup"}}',
)  # fmt: skip
LABELLED = (
    'Action: search\nAction Input: {"query": "cup"}', "Thought: x\nAction: search\nAction Input: {'query': 'cup'}",
    '**Action:** search\n**Action Input:** {"query": "cup"}', 'Action: search\nAction Input:\n{\n  "query": "cup"\n}',
    'Action: search(query="cup")', "Action: `search(query='cup')`", "**Action:** search(query='cup')",
    f"Action: {CALL}", 'Action: {"action": "search", "action_input": {"query": "cup"}}',
    'Action: search\nAction Input: ```json\n{"query": "cup"}\n```',
)  # fmt: skip
MARKED = (
    '<invoke name="search"><parameter name="query">cup</parameter></invoke>',
    '<function_calls>\n<invoke name="search">\n<parameter name="query">cup</parameter>\n</invoke>\n</function_calls>',
    '<minimax:tool_call>\n<invoke name="search">\n<parameter name="query">cup</parameter>\n</invoke>\n</minimax:tool_call>',
    '<|tool_call_start|>[search(query="cup")]<|tool_call_end|>', '[search(query="cup")]', CALL,
    f"<tool_call>\n{CALL}\n</tool_call>",
    "<tool_call>\n<function=search>\n<parameter=query>\ncup\n</parameter>\n</function>\n</tool_call>",
)  # fmt: skip
NONE = (
    "Action: search", "Action: finish it", "Action: nothing.", "Action: search\nAction Input: cup", "Search {'query': 1",
    '{"thought": "x", "tool_calls": []}', '{"tool_calls": [{"name": "search", "arguments": {"query": "a"}',
    "search{'query': 'cup'", 'the search {"query": "cup"}', '{"tool_call": "search"}',
    '<invoke name="search"><parameter name="query">a</parameter> b</invoke>',
    '<invoke name="search"><parameter name="query">cup</parameter>',
)  # fmt: skip
ROUNDS = ("\nObservation: 3\n\n", "\n\nResult: 3\n\n", "\n<tool_response>\n3\n</tool_response>\n", "<|im_end|>\n")


def read(text, finished=True):
    return Reader(CallForm(), TOOLS).read(text, finished)


@pytest.mark.parametrize("answer", [*UNMARKED, *LABELLED, *MARKED])
def test_calls_are_read_in_the_notation_of_each_message(answer):
    assert json.loads(read(answer).action) == CUP
    for cut in range(len(answer)):
        assert read(answer[:cut], finished=False).action in ("", CALL)


@pytest.mark.parametrize("answer", NONE)
def test_text_and_broken_calls_are_none(answer):
    assert read(answer).fault in (Fault.NO_ACTION, Fault.MALFORMED_CALL, Fault.UNKNOWN_TOOL)


@pytest.mark.parametrize("round_", ROUNDS)
@pytest.mark.parametrize("answer", [*LABELLED, *MARKED])
def test_a_call_of_another_notation_behind_an_invented_result_is_invented(answer, round_):
    assert json.loads(read(f"{answer}{round_}{FINISH}").action) == CUP
    assert json.loads(read(f"{answer}{round_}It is 3.").action) == CUP


@pytest.mark.parametrize("end", ["", "\n", "\n</", "\n</tool_call", "\nplease", "\n</tool_call>\nb\n</para"])
def test_a_cut_call_whose_marks_do_not_end_it_is_refused(end):
    said = "<tool_call>\n<function=search>\n<parameter=query>\ncup\n</parameter>\n</function>"
    assert read(said + end, finished=False).action == ""
    assert read(f"{said}\n</tool_call>\n", finished=False).action == CALL
