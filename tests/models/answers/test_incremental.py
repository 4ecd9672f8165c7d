"""Text that is sent while an answer is drawn is the beginning of the answer as it reads when it is whole."""

from hypothesis import example, given
from hypothesis import strategies as st

from coevo.models.answers.calls import calls
from coevo.models.answers.incremental import IncrementalReader
from coevo.models.answers.thinking import without_thinking

CALL = '<tool_call>\n{"name": "go", "arguments": {"place": "safe"}}\n</tool_call>'
PARTS = st.sampled_from(
    [
        "plain", " ", "\n", "a < b", "[x]", "[go(", "1)]", "é😀", "f", "functools", "`x`", "```py\nx\n```", "<think>",
        "</think>", "<THINKING>", "<|channel|>analysis<|message|>", "<|end|>", "◁think▷", "<tool_call>", "STOP", "ST",
        "<|start|>assistant<|channel|>final<|message|>", CALL, "<function=go>", "[TOOL_CALLS]", "Action: go", "{",
        '{"a": "', "✿FUNCTION✿: go",
    ]
)  # fmt: skip
ANSWERS = st.lists(PARTS, max_size=8).map("".join)


def fed(text, size, thinks=False, has_tools=True, stops=()):
    """All that is sent of an answer that arrives in pieces of a size, and its reader."""
    reader = IncrementalReader(thinks, has_tools, stops)
    return "".join(reader.feed(text[at : at + size]) for at in range(0, len(text), size)), reader


def whole(text, thinks, has_tools):
    """The text of an answer that is read when it is whole."""
    spoken = without_thinking(text, thinks).text
    found = calls(spoken) if has_tools else []
    return (spoken[: found[0].start] if found else spoken).strip()


@given(ANSWERS, st.integers(1, 9), st.booleans(), st.booleans())
@example("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", 1, False, False)
def test_it_is_a_beginning_of_the_whole_answer_unless_a_mark_comes_where_none_is_due(text, size, thinks, has_tools):
    sent, reader = fed(text, size, thinks, has_tools)
    behind = text[text.find(sent) + len(sent) :] if sent else ""
    # Thinking that ends behind the text may have begun before it, a mark between channels is removed, and marks in JSON
    # that ends later are data.
    if "</think>" not in behind and "<|start|>" not in behind and "{" not in text:
        assert whole(text, thinks, has_tools).startswith(sent)
    assert sent == sent.strip() and not reader.reasoning.startswith(" ")


@given(st.text("abc é😀.,!?\n", max_size=60), st.integers(1, 9))
def test_of_text_without_marks_all_is_sent_at_once_but_the_blanks_at_its_ends(text, size):
    assert fed(text, size)[0] == text.strip()


def test_text_behind_thinking_is_sent_and_its_reasoning_known():
    for opening, thinks in (("<think>", False), ("", True)):
        sent, reader = fed(f"{opening}hm\n</think>\n\nso it is", 1, thinks)
        assert sent == "so it is"
        assert reader.reasoning == f"{opening}hm\n</think>"
    assert fed("<think>no end", 1)[0] == ""
    text = "<think>a</think> so <think>b</think> c"
    assert fed(text, 1)[0] == "so"
    assert whole(text, False, True).startswith("so")


def test_what_may_begin_a_call_or_a_mark_waits_and_is_sent_once_it_begins_none():
    for begun in ("<tool_", "functools", "[go", "<thi", "✿FUNCTION✿"):
        reader = IncrementalReader(False, True, ())
        assert "".join(map(reader.feed, f"see {begun}")) == "see"
        assert reader.feed(", so") == f" {begun}, so"
    assert fed(f"look \n{CALL} more", 3)[0] == "look"
    assert fed(f"look \n{CALL}", 3, has_tools=False)[0] == f"look \n{CALL}"


def test_the_call_of_a_tool_with_the_longest_name_is_held_back():
    for size in (1, 63, 64, 65, 128):
        assert fed(f"see [{'a' * size}(x=1)]", 7)[0] == "see"


@given(ANSWERS, st.integers(1, 9))
def test_nothing_of_a_stop_or_behind_it_is_sent(text, size):
    sent, reader = fed(text, size, stops=("STOP", "in"))
    ends = [at for stop in ("STOP", "in") if (at := text.find(stop)) >= 0]
    assert reader.stopped == bool(ends)
    assert sent in text[: min(ends, default=len(text))]
