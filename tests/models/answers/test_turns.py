"""Marks of a template, tags and thinking around an action: another speaker's words are none, and data stays data."""

import pytest
from support.answer_shapes import DATABASE, HOUSEHOLD, SHELL

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault
from coevo.records.answer_form import LineForm

F = "```"
LINE = LineForm()
QUERY = f"Action: Operation\n{F}sql\nSELECT 1;\n{F}"
SPEAKERS = (
    "<|im_end|>\n<|im_start|>user\n",
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n",
    "<end_of_turn>\n<start_of_turn>user\n",
    "</s>[INST]",
    "<|user|>\n",
)


@pytest.mark.parametrize("speaker", SPEAKERS)
@pytest.mark.parametrize("form, text", [(DATABASE, QUERY), (HOUSEHOLD, "You can <action>look</action>")])
def test_a_turn_that_begins_behind_thinking_is_another_speakers(speaker, form, text):
    assert Reader(form).read(f"<think>a</think>{speaker}{text}").fault == Fault.NO_ACTION
    if "INST" not in speaker:
        assert Reader(form).read(f"{speaker}{text}").fault == Fault.NO_ACTION


@pytest.mark.parametrize(
    "mark",
    ["<|begin_of_box|>", "<|im_start|>assistant\n", "<|start_of_role|>assistant<|end_of_role|>", "<|assistant|>"],
)
def test_a_mark_behind_thinking_may_begin_the_answer(mark):
    assert Reader(DATABASE).read(f"<think>a</think>{mark}{QUERY}").action == "Operation SELECT 1;"


@pytest.mark.parametrize("mark", ["<|end|>", "<|return|>", "<|im_end|>", "<|endoftext|>", "<|user|>"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_mark_in_quotes_within_a_fence_is_data(mark, quote):
    script = f"echo {quote}{mark}{quote} > f\nls"
    assert Reader(SHELL).read(f"Act: bash\n{F}bash\n{script}\n{F}{mark}").action == f"bash {script}"
    assert Reader(SHELL).read(f"Act: bash\n{F}bash\nls{mark}\nAct: finish").action == "bash ls"


@pytest.mark.parametrize("tag", ["answer", "response", "solution"])
def test_a_tag_around_an_answer_is_none_of_it(tag):
    for before, behind in (
        (f"<{tag}>\n", f"\n</{tag}>"), (f"<{tag}>\n", f"\n</{tag}>\nSo it is."), (f"<{tag}>", ""),
        (f"<{tag}>I'll act.</{tag}>\n", ""), (f"<{tag}></{tag}>\n", ""),
    ):  # fmt: skip
        assert Reader(DATABASE).read(f"{before}{QUERY}{behind}").action == "Operation SELECT 1;"
        assert Reader(LINE).read(f"{before}Action: look{behind}").action == "look"


@pytest.mark.parametrize("form", [LINE, "auto"])
@pytest.mark.parametrize("thinking", ["analysisWe could ... Action: go\nor", "analysis...\nAction: go\n"])
def test_thinking_without_its_marks_is_none_of_the_action_in_any_form(form, thinking):
    assert Reader(form).read(f"{thinking} assistantfinalAction: look").action == "look"
    assert (
        Reader(HOUSEHOLD).read(f"{thinking} <action>go</action> assistantfinal<action>look</action>").action == "look"
    )


@pytest.mark.parametrize("form", [LINE, "auto", HOUSEHOLD])
def test_thinking_without_its_marks_may_not_end(form):
    text = "analysisWe could <action>look</action>\nAction: look\nor not"
    assert Reader(form).read(text).action == ""
    assert Reader(form).read(text, finished=False).fault == Fault.CUT_OFF_THINKING


def test_what_only_looks_like_a_mark_is_a_part_of_the_answer():
    assert Reader("plain").read("analysisData = load(1)").action == "analysisData = load(1)"
    assert Reader(LINE).read("[/INST]Tool: x\nAction: look").action == "look"
