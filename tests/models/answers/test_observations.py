"""Observations that an answer invents: an action behind one never counts, and data that looks like one is kept."""

import pytest

from coevo.models.answers.read import Reader

TOOLS = ({"name": "go", "parameters": {"required": ["to"]}},)


def read(text, form="auto", tools=()):
    return Reader(form, tools).read(text)


@pytest.mark.parametrize(
    "mark",
    [
        "### Observation\n{}", "**Observation**\n{}", "Observation\n{}", "Observation - {}", "[Observation] {}",
        "[Observation 1]: {}", "New observation: {}", "Environment response: {}", "Result of action: {}",
        "The output of the command: {}", "**Result**\n{}", "## Tool output\n{}", "[Result] {}",
        "<observation>{}</observation>", "<result>{}</result>", "[TOOL_RESULTS] {}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["Action: {}", "### Action\n{}", "<action>{}</action>"])
def test_an_action_behind_an_invented_observation_does_not_count(form, mark):
    first, second, seen = form.format("go north"), form.format("take lamp"), mark.format("A hall")
    assert read(f"{first}\n\n{seen}\n\n{second}").action == "go north"
    assert read(f"{second}\n{seen}").action == "take lamp"


def test_an_observation_before_the_first_action_is_what_the_agent_has_seen():
    for seen in ("### Observation\nA hall", "[Observation] A hall", "<observation>A hall</observation>"):
        assert read(f"{seen}\n\nAction: take lamp").action == "take lamp"


@pytest.mark.parametrize(
    "text",
    [
        "Action: go north Observation: A hall",
        "Action: go north **Observation:** A hall\nAction: take lamp",
        "Action: go north. Observation 1: A hall",
        "Action:\ngo north Observation: A hall",
        "Action: go north <observation>A hall</observation>",
        "<action>go north</action><observation>A hall</observation><action>take lamp</action>",
        "<action>go north</action> Observation: A hall <action>take lamp</action>",
        "<action>go north</action> <result>A hall</result> <action>take lamp</action>",
    ],
)
def test_an_observation_in_the_line_of_an_action_ends_it(text):
    assert read(text).action == "go north"


@pytest.mark.parametrize(
    "action",
    [
        "SELECT 'Observation: x' FROM t",
        "grep '<observation>' a.xml",
        'print("so Observation: 1")',
        "Search[all Observation: x]",
        "f(g(x), Observation: y)",
        "echo Observation: x >> log",
        "go to [Observation Deck]",
        "write <output>3</output>",
        '{"note": "x\nObservation: y"}',
        '{"note": "an Observation: y", "more": "<observation>"}',
    ],
)
def test_data_that_looks_like_an_observation_is_kept(action):
    assert read(f"Action: {action}").action == action
    assert read(f"Action: {action}\nObservation: ok\nAction: look").action == action


def test_a_sentence_about_an_observation_ends_nothing():
    said = "Action: go north\nThought: the last Observation: closed.\nAction: go south"
    assert read(said).action == "go south"
    assert read("<action>go</action>\nI saw the last Observation: x.\n<action>look</action>").action == "look"


@pytest.mark.parametrize(
    "text, action",
    [
        ("go north\nObservation: x", "go north"),
        ("go north Observation: x", "go north"),
        ("go north\n\n[Observation] x", "go north"),
        ("Action: go north\nResult: x", "go north"),
        ("Result: 42", "Result: 42"),
        ("\nResult: 42", "Result: 42"),
        ("```\ngo\nResult: x\n```", "go\nResult: x"),
        ('say "Observation: x"', 'say "Observation: x"'),
    ],
)
def test_a_plain_answer_ends_at_an_invented_observation(text, action):
    assert read(text, "plain").action == action


def test_a_call_behind_an_invented_result_does_not_count():
    calls = [f'<tool_call>{{"name": "go", "arguments": {{"to": "{to}"}}}}</tool_call>' for to in "ab"]
    for mark in ("### Result\nok", "[Observation] ok", "<tool_result>ok</tool_result>", "✿RESULT✿: ok"):
        assert '"a"' in read(f"{calls[0]}\n{mark}\n{calls[1]}", tools=TOOLS).action


def test_an_observation_in_a_call_without_a_closing_mark_is_data():
    said = '[TOOL_CALLS] [{"name": "go", "arguments": {"to": "a\nResult: b"}}]'
    assert read(said, tools=TOOLS).action == '{"name": "go", "arguments": {"to": "a\\nResult: b"}}'
