"""JSON as models write it: read as it is meant, or not at all."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coevo.records.lenient import value_at

TEXTS = st.text(st.sampled_from("ab'\"\\/\n\t,:{}[]#/é \u2028"), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.5, -2e3]) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CASES = {
    "{'term': 'cup', 'n': 2}": {"term": "cup", "n": 2},
    '{"a": True, "b": None, \'c\': false}': {"a": True, "b": None, "c": False},
    '{"a": [1, 2,],}': {"a": [1, 2]},
    '{"a": 1 // one\n, # two\n"b": /* three */ 2}': {"a": 1, "b": 2},
    '{"u": "http://x#y", }': {"u": "http://x#y"},
    "{'a': 'it\\'s'}": {"a": "it's"},
    "{'a': 'x\ny'}": {"a": "x\ny"},
    '{"a": "\\/", }': {"a": "/"},
    "{'a': '\\u00e9\\n'}": {"a": "é\n"},
    "{'a': -1, 'b': +.5, 'c': 0x10}": {"a": -1, "b": 0.5, "c": 16},
}
UNCLEAR = [
    '{"a": {"b": 1}', "{'a': 'x", '{"a" 1}', '{"a": "he said "hi" now"}', "{'a': 'it's'}", '{"a": "b" "c", }',
    "{'a': '\\d'}",
    "{'a': '\\/'}", "{'a': b'x'}", "{'a': (1, 2)}", "{'a', 'b'}", "{1: 2}", "{a: 1}", "{'a': undefined}", "{'a': 1+2}",
    "{'a': 1+2j}", "{'a': 1, 'a': 2}", "{'a': NaN}", "{'a': x()}", "{'a': 1 /* c }", "{'a': ...}", "{'a': '''x'''}",
    "{'a': [-2,000.0]}", "{'a': [2,.5]}", "{'a': [2.,5]}", "{'a': 007}", "x",
]  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_nearly_json_is_read(text):
    assert value_at(f"{text} and more", 0) == (CASES[text], len(text))


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_may_mean_two_things_is_not_read(text):
    assert value_at(text, 0) is None


def test_strict_json_comes_first():
    assert value_at('x{"a": "\\/\\ud83d\\ude00"}', 1) == ({"a": "/\U0001f600"}, 24)
    assert value_at("[" * 150 + "]" * 150, 0)[1] == 300
    assert value_at("[" * 150 + "1," + "]" * 150, 0) is None


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    value=st.dictionaries(TEXTS, VALUES, max_size=3) | st.lists(VALUES, max_size=3),
    tail=st.sampled_from(["", " }", "'"]),
)
def test_python_notation_is_read_as_python_reads_it(value, tail):
    assert value_at(repr(value) + tail, 0) == (value, len(repr(value)))


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    value=st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3),
    where=st.integers(0, 200),
    junk=st.sampled_from(",:'\"}]{[x"),
)
def test_a_character_too_many_changes_no_other_value(value, where, junk):
    written = json.dumps(value, ensure_ascii=False)
    before = written[: where % len(written)]
    assume((len(before) - len(before.rstrip("\\"))) % 2 == 0)  # behind a backslash it makes another escape
    spoiled = before + junk + written[len(before) :]
    found = value_at(spoiled, 0)
    try:
        strict = json.loads(spoiled, strict=False)
    except ValueError:
        strict = value
    assert found is None or found[1] < len(spoiled) or found[0] == strict
