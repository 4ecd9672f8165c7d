"""Answers that a context asks for, writes into history and targets, and reads."""

from dataclasses import replace

import pytest
from support.chat import chat
from support.prompts import MOMENT, chat_context, read, text, words_context

from coevo.configs.context_config import ContextConfig
from coevo.models.answers.read import Reader
from coevo.models.policy.context import Context
from coevo.records.answer_form import (
    BlockForm,
    FenceForm,
    LineForm,
    NamedAction,
    NamedForm,
    OwnForm,
    TagForm,
    WholeForm,
)
from coevo.records.demonstration import Answer, PastTurn
from coevo.records.episode import Completion
from coevo.utilities.errors import ConfigError


def test_an_answer_that_the_limit_cut_is_no_action():
    cut = chat_context().read(Completion((), (), "Thought: so\nAction: go to fr", False), MOMENT)
    assert (cut.action, "cut off" in cut.fault) == ("", True)


def test_the_parser_of_the_configuration_reads():
    context = chat_context(parser="tag")
    assert read(context, "<action>go safe</action>").action == "go safe"
    assert (read(context, "Action: go safe").action, bool(read(context, "Action: go safe").fault)) == ("", True)


DATABASE = NamedForm(
    actions=(NamedAction(name="Operation", fence="sql"), NamedAction(name="Answer", label="Final Answer")),
    examples=("Operation SELECT 1;",),
)
SAID = "Action: Operation\n```sql\nSELECT 2;\n```"


@pytest.mark.parametrize(
    ("form", "asked", "action", "said"),
    [
        (DATABASE, "Action: Answer\nFinal Answer: ...\n\nFor example:\n\nAction: Operation\n```sql\nSELECT 1;\n```",
         "Operation SELECT 2;", SAID),
        (LineForm(label="Move"), "a line 'Move: ...'.", "go safe", "Move: go safe"),
        (BlockForm(label="SQL"), "then 'SQL:' and behind it", "SELECT 1\nFROM t", "SQL:\nSELECT 1\nFROM t"),
        (TagForm(name="move"), "as <move>...</move>.", "go safe", "<move>go safe</move>"),
        (FenceForm(), "in one fenced code block.", "go safe", "```\ngo safe\n```"),
        (WholeForm(), "the action alone, and with nothing else.", "go safe", "go safe"),
        (OwnForm(parser="support.answer_shapes:shouted", request="Shout {it}!", written="{{action}}!"),
         "Shout {it}!", "GO", "{GO}!"),
    ],
)  # fmt: skip
def test_the_form_of_the_environment_is_asked_for_written_and_read(form, asked, action, said):
    context, moment = chat_context(), replace(MOMENT, form=form, history=(PastTurn("at safe", action, "fine"),))
    prompt = text(context, moment)
    assert asked in prompt
    assert (said if not isinstance(form, WholeForm) else f"Action: {action}") + "\nResult: fine" in prompt
    assert context.target(Answer("", action), form)[-1] == context.target(Answer("", action))[-1]
    assert context.read(Completion((), (), said, True), moment).action == action
    assert context.answer_tokens(action, moment) == len(context._encoder.data(said)) + 1


def test_a_run_may_choose_another_form_and_the_default_one_changes_no_prompt():
    chosen = chat_context(parser="tag")
    assert text(chosen, replace(MOMENT, form=DATABASE)) == text(chosen)
    assert chosen.read(Completion((), (), "<action>go</action>", True), replace(MOMENT, form=DATABASE)).action == "go"
    assert text(chat_context(), replace(MOMENT, form=LineForm())) == text(chat_context())
    assert text(words_context(), replace(MOMENT, form=DATABASE)) == text(words_context())


@pytest.mark.parametrize(
    ("said", "action", "fault"),
    [("I shout: {GO}!", "GO", ""), ("go", "", "no action"), ("raise", "", "parser failed"),
     ("odd", "", "parser failed"), ("<think>{NO}!</think>{GO}!", "GO", "")],
)  # fmt: skip
def test_a_parser_of_the_environment_reads_and_never_ends_a_run(said, action, fault):
    form = OwnForm(parser="support.answer_shapes:shouted", request="Shout!")
    answer = Reader(form).read(said)
    assert (answer.action, answer.fault) == (action, fault)
    assert Reader(form).read("{GO}!", finished=False).fault == "cut off"
    with pytest.raises(ConfigError, match=r"Guide.answer = 'support.answer_shapes:quiet': .* has no quiet"):
        Reader(form.model_copy(update={"parser": "support.answer_shapes:quiet"})).read(said)


def test_what_a_template_opens_as_thinking_is_no_action():
    tokenizer = chat()
    tokenizer.chat_template = tokenizer.chat_template.replace("assistant\n", "assistant\n<think>\n")
    context = Context(ContextConfig(style="chat", experience_tokens=10_000), tokenizer)
    assert read(context, "Perhaps\nAction: look\n</think>\nAction: go safe").action == "go safe"
    unclosed = read(context, "Perhaps\nAction: look")
    assert (unclosed.action, bool(unclosed.fault)) == ("", True)


@pytest.mark.parametrize("context", [words_context(), chat_context()], ids=["words", "chat"])
@pytest.mark.parametrize("answer", [Answer("lotus mug in safe", "go safe"), Answer("", "take mug")])
def test_targets_end_and_read_back(context, answer):
    ids = context.target(answer)
    assert ids[-1] == context._tokenizer.eos_token_id
    assert read(context, context._tokenizer.decode(ids, skip_special_tokens=True)) == answer


@pytest.mark.parametrize("said", ["", "go safe", "think mug in safe", "think mug act", "act", "think x reactor y"])
def test_unreadable_words_are_no_action(said):
    assert read(words_context(), said) == Answer(said, "")


@pytest.mark.parametrize(
    "said, answer",
    [
        (
            "Thought: the mug\nis in the safe.\nAction: go safe\nThat is all.",
            Answer("the mug\nis in the safe.", "go safe"),
        ),
        ("Action: go safe", Answer("", "go safe")),
        ("Sure!\nAction:go safe", Answer("", "go safe")),
        ("I would go to the safe.", Answer("I would go to the safe.", "", "no action")),
        ("Thought: hm\nAction:", Answer("Thought: hm\nAction:", "", "no action")),
    ],
)
def test_reading_prose(said, answer):
    assert read(chat_context(), said) == answer
