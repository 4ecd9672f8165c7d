"""Checks of a model's text: its length, its script, and the words that it shares with the attempts."""

import pytest

from coevo.memory.writers.model.answer_lessons import foreign, refusal


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", None),
        ("x" * 10, None),
        ("x" * 11, "long"),
        ("  aaaa \n  bbbbb ", None),  # blanks count once: 10
        (7, "shape"),
        (None, "shape"),
        ("a\u0007", "control"),
        ("a </s>", "control"),
        ("\uff1c/s\uff1e", "control"),
        ("\uff1c\uff5ceos\uff5c\uff1e", "control"),
        ("\uff1c\uff45os\uff1e", "control"),
        ("a\u2009\uff1cb", None),
        ("<\u200bs>", "control"),
    ],
)
def test_a_text_is_one_line_of_plain_text_within_a_limit(text, reason):
    assert refusal(text, 10) == reason


@pytest.mark.parametrize("name", ["think", "Thinking", "thought", "reasoning", "seed:think"])
@pytest.mark.parametrize("form", ["<{}>", "</{}>", "\uff1c{}\uff1e"])
def test_marks_of_thinking_are_refused(name, form):
    assert refusal(f"heat {form.format(name)} mug", 99) == "control"


@pytest.mark.parametrize("mark", ["[THINK]", "[/think]", "\uff3bTHINK]", "\u25c1think\u25b7", "\u25c1/think\u25b7"])
def test_marks_of_thinking_of_another_form_are_refused(mark):
    assert refusal(mark, 99) == "control"


def test_words_that_only_look_alike_are_not_refused():
    assert refusal("think [x] <y> of reasoning > thought", 99) is None


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("heat the mug", {"mug"}, None),
        ("heat the pan", {"mug"}, "ungrounded"),
        ("the . of", {"mug", "the"}, "empty"),
        # Four of five letters are Latin, then three of four.
        ("abcd \u0436", {"abcd"}, None),
        ("abc \u0436", {"abc"}, "script"),
        # Attempts without letters have no script.
        ("12 go", {"12"}, None),
        ("go", {"12"}, "ungrounded"),
    ],
)
def test_a_lesson_is_written_as_the_attempts_are(text, words, reason):
    assert foreign(text, frozenset(words)) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\u52a0\u5fae\u6ce2", None),
        ("\u7089\u6ce2\u7089", None),
        ("\u5fae\u52a0", "ungrounded"),
        ("\u52a0\u7089", "ungrounded"),
        ("\u7089", "ungrounded"),
    ],
)
def test_without_blanks_two_neighbouring_characters_are_shared(text, reason):
    """The attempts have a word of three characters: its first two, and its last two."""
    assert foreign(text, frozenset({"\u5fae\u6ce2\u7089"})) == reason


def test_neighbours_in_ascii_are_no_word():
    assert foreign("ab\u0439", frozenset({"ab\u0436"})) == "ungrounded"
    assert foreign("xb\u0436", frozenset({"ab\u0436"})) is None
