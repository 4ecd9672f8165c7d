"""Thinking of reasoning models is no part of an answer, and its marks within an action are data."""

import pytest

from coevo.models.answers.read import Reader
from coevo.models.answers.thinking import opens_thinking
from coevo.records.demonstration import Answer


def test_thinking_is_no_part_of_the_thought():
    answer = Reader().read("<think>\nThought: secret\n</think>\n\nThought: it is cold\nAction: look")
    assert answer == Answer("it is cold", "look")
    assert Reader().read("<think>\n\n</think>\n\nAction: look") == Answer("", "look")


@pytest.mark.parametrize(
    "text, action",
    [
        ("Action: grep '<think>' log.txt", "grep '<think>' log.txt"),
        ("Action: echo '</think>' > a.txt", "echo '</think>' > a.txt"),
        ('Action: say "a <think> b"', 'say "a <think> b"'),
        ("Action:\n```\ngrep <think> log.txt\n```", "grep <think> log.txt"),
        ("Action:\n```\ncat a </think> b\n```", "cat a </think> b"),
        ("Action: cat <<EOF > a\n<think>\nEOF", "cat <<EOF > a\n<think>\nEOF"),
        ("Action: grep <think> log.txt", "grep <think> log.txt"),
        ("I write '<think>' first.\nAction: go north", "go north"),
        ("<think>So, '</think>Action: go north", "go north"),
        ("<think>\n```\nAction: look\n</think>\nAction: go north\n```", "go north"),
        ("Action: go north\n<think>Or\nAction: look", "go north"),
        ("Action: go north <think>right?</think>", "go north"),
        ("<think>x</think>\nAction: grep '<think>' a", "grep '<think>' a"),
    ],
)
def test_marks_of_thinking_in_an_action_are_data(text, action):
    assert Reader().read(text).action == action


@pytest.mark.parametrize(
    "text", ["<think>\nI may\nAction: look", "So <think> I may\nAction: look", "```\n<think>\nI may\nAction: look\n```"]
)
def test_thinking_that_does_not_end_holds_no_action(text):
    assert Reader().read(text).fault == "no action"
    assert Reader().read(text, finished=False).fault == "cut off while thinking"


@pytest.mark.parametrize(
    "prompt, inside",
    [
        ("<|im_start|>assistant\n<think>\n", True),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        ("<|im_start|>assistant\n", False),
        ("use <think> to think<|im_end|>\n<|im_start|>assistant\n", False),
    ],
)
def test_a_template_may_open_the_thinking(prompt, inside):
    assert opens_thinking(prompt) == inside
