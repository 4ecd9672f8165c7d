"""The syntax of edit operations: written and read back, and whatever is not in it refused line by line."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.memory.edit_operations import KINDS, MAX_LINE_CHARS, Operation, RefusedError, parse
from coevo.memory.text import MAX_FIELD_CHARS

IDS = st.text("0123456789abcdef", min_size=12, max_size=12)
TEXTS = st.text("ab \"\\/(){}[],'ä\u4e2d", min_size=1, max_size=60).map(lambda text: " ".join(f"word {text}".split()))


def refused(line):
    with pytest.raises(RefusedError) as caught:
        parse(line)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
    return str(caught.value)


def test_each_operation_is_read():
    assert [
        parse('ADD("lotus mug in safe")'),
        parse('EDIT("a1", "lotus mug in drawer")'),
        parse('UPVOTE("a1")'),
        parse('DOWNVOTE("a1")'),
        parse('MERGE(["a1", "b2"], "lotus mug in drawer")'),
    ] == [
        Operation("ADD", (), "lotus mug in safe"),
        Operation("EDIT", ("a1",), "lotus mug in drawer"),
        Operation("UPVOTE", ("a1",)),
        Operation("DOWNVOTE", ("a1",)),
        Operation("MERGE", ("a1", "b2"), "lotus mug in drawer"),
    ]


def test_blanks_around_and_within_do_not_matter():
    assert parse('  ADD ( "  lotus   mug in safe " )  ') == parse('ADD("lotus mug in safe")')


@given(st.sampled_from(KINDS), st.lists(IDS, min_size=2, max_size=4, unique=True), TEXTS)
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read_back(kind, targets, text):
    many = {"ADD": (), "MERGE": tuple(targets)}.get(kind, tuple(targets[:1]))
    operation = Operation(kind, many, "" if kind.endswith("VOTE") else text)
    assert parse(operation.line()) == operation


MALFORMED = {
    "": "is no operation",
    "Sure! Here are the edits:": "is no operation",
    'add("lotus mug in safe")': "is no operation",
    'REMOVE("a1")': "is no operation",
    '- ADD("lotus mug in safe")': "is no operation",
    'ADD("lotus mug in safe"); ADD("lotus cup in safe")': "arguments that are not JSON",
    'ADD("lotus\nmug")': "is no operation",
    "ADD(lotus mug in safe)": "arguments that are not JSON",
    "ADD()": "does not fit ADD(text)",
    "ADD(7)": "does not fit ADD(text)",
    'ADD("lotus mug", "in safe")': "does not fit ADD(text)",
    'ADD("")': "says nothing",
    'ADD("   ")': "says nothing",
    'ADD("!!! ... ?")': "says nothing",
    'ADD("it is the")': "says nothing",
    f'ADD("{"mug " * 61}safe")': f"{MAX_FIELD_CHARS} are the most",
    f'ADD("{"x" * 10_000}")': f"longer than {MAX_LINE_CHARS} characters",
    f'UPVOTE("{"x" * 10_000}")': f"longer than {MAX_LINE_CHARS} characters",
    'ADD("lotus \\u001b[2J mug")': "control character U+001B",
    'ADD("lotus \\n mug")': "control character U+000A",
    'ADD("lotus \\ud800 mug")': "control character U+D800",
    'ADD("lotus \\u202e mug")': "control character U+202E",
    'EDIT("a1")': "does not fit EDIT(id, text)",
    'EDIT("lotus mug in safe", null)': "does not fit EDIT(id, text)",
    'EDIT("a1", "")': "says nothing",
    "UPVOTE()": "does not fit UPVOTE(id)",
    'UPVOTE(["a1"])': "does not fit UPVOTE(id)",
    'DOWNVOTE("a1", "b2")': "does not fit DOWNVOTE(id)",
    'MERGE(["a1"], "lotus mug")': "merges 1: two or more",
    'MERGE(["a1", "a1"], "lotus mug")': "merges 1: two or more",
    'MERGE([], "lotus mug")': "merges 0: two or more",
    'MERGE("a1", "lotus mug")': "does not fit MERGE",
    'MERGE(["a1", 2], "lotus mug")': "does not fit MERGE",
    'MERGE(["a1", "b2"], "")': "says nothing",
    f"ADD({'[' * 4000})": "arguments that are not JSON",
}


@pytest.mark.parametrize("line", MALFORMED, ids=lambda line: line[:24])
def test_what_is_malformed_is_refused_with_a_reason(line):
    assert MALFORMED[line] in refused(line)


@given(st.text(st.characters(codec=None), max_size=80) | st.from_regex(re.compile(r"(ADD|EDIT|MERGE)\(.{0,40}\)")))
@settings(max_examples=300, deadline=None)
def test_any_other_line_is_an_operation_or_refused(line):
    try:
        operation = parse(line)
    except RefusedError as error:
        assert str(error).isprintable()
    else:
        assert operation.kind in KINDS
