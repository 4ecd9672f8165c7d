"""Calls in Python's notation: whatever stands in their texts, and values of Python or of JSON."""

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault

TOOLS = ({"name": "mail.send", "parameters": {"required": ["from"]}},)
PLACES = {
    "marked": "<tool_call>{}</tool_call>",
    "marked, lines": "<tool_call>\n{}\n</tool_call>",
    "llama": "<|python_tag|>{}",
    "llama, listed": "<|python_start|>[{}]<|python_end|>",
    "listed": "I send it.\n[{}]",
    "gemma": "```tool_code\n{}\n```",
    "fence": "So:\n```python\n{}\n```",
    "label": "Thought: so\nAction: {}",
    "label, fence": "Action:\n```\n{}\n```",
}
TEXTS = [
    "<b>bold</b>", "a < b", "</s>", "```", "```\ncode\n```", "two\nlines", "\n", "true", "None", "from=me", "a, b=1",
    "(", ")]", "#1",
    "it's", 'say "hi"', "back\\slash", "\\n", "", "<tool_call>", "</tool_call>", "<|im_end|>", "<|python_end|>",
    "Action: go",
    "Observation: x", "\nResult: x", "<action>go</action>", "é \u2028 \U0001f600", "C:\\dir", "'''", '"""',
]  # fmt: skip
VALUES = {"true": True, "false": False, "null": None, "True": True, "None": None, "[1, true]": [1, True],
          "{'a': null}": {"a": None},
          "-1.5": -1.5, "'a'": "a", "[]": []}  # fmt: skip


def read(place, call):
    return Reader(tools=TOOLS).read(PLACES[place].format(call))


def quoted(text):
    """A text in double quotes, its line breaks as they are."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("place", PLACES)
def test_a_text_may_hold_anything(place, text):
    for write in (repr, quoted):
        is_mark = "```\n" in text and write is quoted  # a line that is the mark of a fence ends one
        fits = not is_mark or place not in ("fence", "label, fence")
        answer = read(place, f"mail.send(from={write(text)}, to='b')")
        expected = {"name": "mail.send", "arguments": {"from": text, "to": "b"}}
        assert (json.loads(answer.action) == expected) if fits else answer.fault


@pytest.mark.parametrize("written, place", [*product(VALUES, PLACES)])
def test_values_of_python_and_of_json(written, place):
    answer = read(place, f"mail.send(\n  from = {written},  # sender\n  class='x',\n)")
    assert json.loads(answer.action)["arguments"] == {"from": VALUES[written], "class": "x"}


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(text=st.lists(st.sampled_from([text for text in TEXTS if "```" not in text]), max_size=3).map("".join))
def test_any_text_is_kept(place, text):
    answer = read(place, f"mail.send(from={text!r})")
    assert json.loads(answer.action)["arguments"] == {"from": text}


@pytest.mark.parametrize("place", [each for each in PLACES if each != "fence"])
@pytest.mark.parametrize(
    "code",
    [
        "mail.send('a')", "mail.send(from='a' 'b')", 'mail.send(from="a "b" c")', "mail.send(from='a', from='b')",
        "mail.send(from=x)", "mail.send(from=f'a')", "mail.send(**{'from': 'a'})", "mail.send(from='a')('b')",
        "mail.send(from={1, 2})", "mail.send(from=b'a')", "mail.send(from='a'", "mail.send(from='a)",
    ],
)  # fmt: skip
def test_what_is_not_clear_is_never_executed(place, code):
    assert read(place, code).fault in (Fault.MALFORMED_CALL, Fault.NOT_A_CALL, Fault.NO_ACTION)


def test_of_several_calls_the_last_one_counts():
    for code in ("mail.send(from='a')\nmail.send(from='b')", "mail.send(from='a'), mail.send(from='b')"):
        assert '"b"' in read("marked", code).action
