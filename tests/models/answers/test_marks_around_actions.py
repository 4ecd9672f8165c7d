# ruff: noqa: E501  (members are read best many in a line)
"""Actions of one line within marks that are no part of them, and answers that are objects of JSON."""

import pytest

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault
from coevo.records.answer_form import LineForm, TagForm

LINE, TAG = LineForm(examples=("go to cabinet 1",)), TagForm()
GO = "go to desk 1"
MARKS = (
    "{}", "*{}*", "_{}_", "**{}**", "***{}***", "**_{}_**", "“{}”", "“**{}**”", "‘{}’", "《{}》", "「{}」", "<b>{}</b>",
    "<code>{}</code>", "[{}]", "\\boxed{{{}}}", "$\\boxed{{\\text{{{}}}}}$", "\\(\\boxed{{{}}}\\)", "$\\text{{{}}}$", "{}。",
    "<action>{}</action>", '{{"action": "{}"}}', '{{"thought": "x", "action": "{}"}}', "{}\u200b",
)  # fmt: skip
AROUND = ("*Action: {}*", "_Action: {}_", "**Action:** {}", "Action: {}</action>", "Action (1): {}", "Action [1]: {}")
OBJECTS = (
    '{{"thought": "x", "action": "{}"}}', '{{"action": "{}", "why": "a, b"}}', '{{\n  "Action": "{}",\n  "Reason": "y"\n}}',
    "{{'thought': 'it\\'s', 'action': '{}'}}", '```json\n{{"thought": "x", "action": "{}"}}\n```',
    'Here:\n{{"thought": "Action: look", "action": "{}"}}', '{{"action": "{}"}}\nObservation: x\n{{"action": "look"}}',
    '{{"action": "{}"', '{{\n"action": "{}",\n"thought": "x"',
)  # fmt: skip
NO_FIELD = (
    '{"thought": "x", "action": null}', '{"thought": "x", "action": ""}', '{"action": {"go": 1}}', '{"action": 3}',
    '{"actions": "look"}', '{"thought": "Action: look"}', '{"next": "look"}', '{"action": "look\\nlook"}',
)  # fmt: skip
DATA = (
    "say *hi* to *bob*", "compute 2*3*", "a_b_", "write [x](y)", "put <b>x</b> in y", "look at 'a' and 'b'", "(move a b)",
    'take "mug" 1', "{a} {b}", "pay $5$ now",
)  # fmt: skip
PAGES = (
    "You arrive at desk 1. On the desk 1, you see a mug 1.", "You pick up the mug 1.", "You are facing the desk 1.",
    "On the desk 1, you see nothing.", "Nothing happens.", "> You open the drawer 1.", "You are carrying: a mug 1.",
    "You have clicked Buy Now.", "Your observation is a desk.", "You put the mug 1 in the sink 1.",
)  # fmt: skip
TAGGED = "Thought: so.\n<action>{}</action>"


@pytest.mark.parametrize("mark", MARKS)
def test_marks_around_an_action_are_no_part_of_it(mark):
    said = mark.format(GO)
    assert Reader(LINE).read(f"Thought: x\nAction: {said}").action == GO
    assert Reader(TAG).read(f"<think>x</think>\n<action>{said}</action>").action in (GO, "")


@pytest.mark.parametrize("answer", [*AROUND, *OBJECTS, TAGGED])
def test_labels_of_each_typography_and_fields_hold_the_action(answer):
    said = answer.format(GO)
    assert Reader(LINE).read(said).action == GO
    assert {Reader(LINE).read(said[:cut], finished=False).action for cut in range(len(said))} <= {"", GO}


@pytest.mark.parametrize("answer", NO_FIELD)
def test_an_object_without_the_action_is_none(answer):
    assert Reader(LINE).read(answer).fault == Fault.NO_ACTION


@pytest.mark.parametrize("action", DATA)
def test_marks_within_an_action_stay(action):
    assert Reader(LINE).read(f"Action: {action}").action == action
    assert Reader(TAG).read(f"<action>{action}</action>").action == action


def test_a_mark_of_the_examples_stays():
    assert Reader(LineForm(examples=("[look]",))).read("Action: [look]").action == "[look]"
    assert Reader(LineForm(examples=("*look*",))).read("Action: *look*").action == "*look*"


def test_a_tag_counts_only_where_the_label_is_missing():
    assert Reader(LINE).read("I may <action>look</action>. Action: go").action == "go"
    assert Reader(LINE).read("I may <action>look</action>. Ac", finished=False).fault == Fault.CUT_OFF


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("form, answer", [(TAG, "<action>{}</action>"), ("auto", "Action: {}")])
def test_an_invented_page_without_a_label_ends_the_answer(form, answer, page):
    text = f"{answer.format(GO)}\n\n{page}\n\n{answer.format('look')}"
    assert Reader(form).read(text).action == GO
    assert Reader(form).read(f"{page}\n{answer.format(GO)}").action == GO


def test_a_label_in_capital_letters_counts_within_a_line():
    assert Reader(LINE).read("THOUGHT: the desk ACTION: go to desk 1").action == GO
    assert Reader(LINE).read("I choose the action: go to desk 1").fault == Fault.NO_ACTION
