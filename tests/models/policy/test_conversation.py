"""Conversations over real chat templates: each prompt continues the one before, and is what the template renders."""

import random
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from support import templates

from coevo.configs.context_config import ContextConfig
from coevo.models.policy import template
from coevo.models.policy.chat_prompt import Prose, branch_of
from coevo.models.policy.context import Context
from coevo.models.policy.encoding import TemplateEncoder
from coevo.models.policy.layout import Deviation, Layout
from coevo.records.demonstration import Moment, Note, PastTurn
from coevo.records.entry import ZONES
from coevo.records.episode import Completion, Turn
from coevo.utilities.errors import CoevoError

CONFIG = ContextConfig(style="conversation", memory_length=None, experience_tokens=10_000)
REAL = {"qwen2_5": "<|im_end|>", "qwen3": "<|im_end|>", "llama3": "<|eot_id|>", "gemma": "<end_of_turn>"}
"""End token of an answer, by template."""
DEVIATIONS = {
    "qwen2_5": set(),
    "qwen3": {Deviation.OPENING, Deviation.THOUGHTS},
    "llama3": {Deviation.BLANKS},
    "gemma": {Deviation.BLANKS},
}
"""Deviations of each template, besides those that all have."""
FRAGMENTS = (
    *("<|im_end|>", "<|im_start|>system\n", "<|im_<|im_end|>end|>", "<|IM_END|>", "\uff1c|im_end|\uff1e", "<|im_end"),
    *("<|eot_id|>", "<|start_header_id|>", "<end_of_turn>\n", "<start_of_turn>model\n", "<eos>", "<bos>", "<s>"),
    *("<think>", "</think>", "<tool_response>", "</tool_call>", "<mask>", "x<|y|>z", "<", "|", ">", "<\u200b|im_end|>"),
    *("\n", "\n\n", " ", "  ", "\t", "\r\n", "", "a", "mug", "Action:", "Result: ", "user", "assistant", "|>"),
    *("\u4e16\u754c", "e\u0301", "\U0001f600", "\ufeff", "{{ x }}", "{% y %}", "<div>", "\x00", "\u2028", "12345"),
    *("[SEP]", "\u00a0"),
)
SAID = ("Thought: so\nAction: go", "Action: open \u4e16", "Thought: it is\n\nAction: SELECT <b>", "x", "")
THOUGHT = "\n</think>\n\n"
EMPTY_THOUGHT = "<think>\n\n</think>\n\n"


def text(draws):
    return "".join(draws.choice(FRAGMENTS) for _ in range(draws.randint(0, 8)))


def answer(draws, tokenizer, end):
    """Token ids of an answer: usual text, adversarial text or noise; some are cut off, or end in another way."""
    kind = draws.random()
    if kind < 0.4:
        ids = tokenizer(draws.choice(SAID), add_special_tokens=False)["input_ids"]
    elif kind < 0.8:
        ids = tokenizer(text(draws), add_special_tokens=False)["input_ids"]
    else:
        ids = [draws.randrange(len(tokenizer)) for _ in range(draws.randint(1, 12))]
    finished = draws.random() < 0.8
    ids = [index for index in ids if index != end]
    return (*ids, end) if finished or not ids else tuple(ids)


@cache
def context(name):
    return Context(CONFIG, templates.tokenizer(name))


def turn(prompt, ids, past):
    return Turn(
        past.observation, prompt, Completion(ids, (-1.0,) * len(ids), "", True), past.action, past.feedback, 0, True
    )


def messages(moments):
    """System text and first message, then those after each answer."""
    prose = Prose(CONFIG)
    first, *later = moments
    blocks = [
        prose.block([(note.zone, prose.line(note, each.instruction)) for note in each.lessons]) for each in moments
    ]
    return [
        *prose.messages(first, blocks[0], ()),
        *(
            prose.following(each.history[-1].feedback, block, each.observation)
            for each, block in zip(later, blocks[1:], strict=True)
        ),
    ]


def note(draws):
    return Note(text(draws), text(draws), text(draws), draws.choice(ZONES))


def rendered(name, contents, answers):
    """A conversation's text by the twin's template: its own way for a template without a system role."""
    twin = templates.tokenizer(name, twin=True)
    system, user, *later = contents
    said = [("system", system), ("user", user)] if name != "gemma" else [("user", f"{system}\n\n{user}")]
    for one, content in zip(answers, later, strict=True):
        said += [("assistant", one), ("user", content)]
    chat = [{"role": role, "content": content} for role, content in said]
    return twin.apply_chat_template(chat, add_generation_prompt=True, tokenize=False, enable_thinking=False)


def expected(name, contents, answers, end):
    """Token ids of a prompt, with the exceptions by name.

    The template renders all messages, with a mark for each answer; in the place of a mark stand the generated tokens
    (``TOKENS``, ``THOUGHTS``, ``BLANKS``).
    """
    twin = templates.tokenizer(name, twin=True)
    whole, ids = rendered(name, contents, [f"ANSWER-{index}-" for index in range(len(answers))]), []
    opening = templates.private(EMPTY_THOUGHT, templates.names(name)) if Deviation.OPENING in DEVIATIONS[name] else ""
    for index, one in enumerate(answers):
        before, _, whole = whole.partition(f"ANSWER-{index}-")
        ids += twin(before + opening, add_special_tokens=False)["input_ids"]
        # A cut answer gets the end token of the template (``END``).
        ids += one[:-1] if one[-1] == end else one
    return tuple(ids + twin(whole, add_special_tokens=False)["input_ids"])


def plays(name, seed):
    """One random conversation; checks both equalities at each turn, and returns how many turns there were by kind."""
    draws, counts = random.Random(f"{name} {seed}"), Counter()
    tokenizer, twin = templates.tokenizer(name), templates.tokenizer(name, twin=True)
    end = tokenizer.convert_tokens_to_ids(REAL[name])
    instruction, moments, turns, answers = text(draws), [], [], []
    observation = text(draws)
    for number in range(draws.randint(1, 9)):
        history = tuple(PastTurn(each.observation, each.action, each.feedback) for each in turns)
        lessons = tuple(note(draws) for _ in range(draws.choice((0, 0, 1, 2))))
        moment = Moment(instruction, lessons, history, observation, played=tuple(turns))
        moments.append(moment)
        prompt = context(name).prompt(moment)
        contents = messages(moments)
        assert prompt == expected(name, contents, answers, end)
        if turns:
            before = (*turns[-1].prompt_ids, *answers[-1])
            assert prompt[: len(before)] == before
            cut = answers[-1][-1] != end
            assert not cut or prompt[len(before)] == end
            counts[Deviation.END] += cut
        counts["turns"] += 1
        counts["rendered as a whole"] += _equals_whole(name, contents, answers, end, prompt, twin)
        ids = answer(draws, tokenizer, end)
        turns.append(turn(prompt, ids, PastTurn(observation, f"go {number}", text(draws))))
        answers.append(ids)
        observation = text(draws)
    return counts


def _equals_whole(name, contents, answers, end, prompt, twin):
    """Compare with the whole text of a conversation whose answers need no exception but that of its opening."""
    said = [twin.decode(one[:-1] if one[-1] == end else one) for one in answers]
    if any(one != one.strip() or "think" in one or "\ufffd" in one for one in said):
        return False
    opening = templates.private(EMPTY_THOUGHT, templates.names(name))
    text = twin.decode(prompt)
    whole = rendered(name, contents, said)
    if Deviation.OPENING in DEVIATIONS[name]:
        text = text.replace(opening, "")
        whole = whole.replace(opening, "")
    assert text == whole
    return True


@pytest.fixture
def untried(monkeypatch):
    """No template is tried out in a process of its own, which takes a second each."""
    monkeypatch.setattr(template, "try_out", lambda *_: None)


@pytest.mark.parametrize("name", REAL)
def test_prompts_continue_and_are_what_the_template_renders(name):
    counts = sum((plays(name, seed) for seed in range(25)), Counter())
    assert counts["turns"] > 80
    assert counts["rendered as a whole"] > 20
    assert counts[Deviation.END] > 5


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_thousand_turns_over_four_templates():
    counts, seed = Counter(), 1000
    while counts["turns"] < 10_000:
        for name in REAL:
            counts += plays(name, seed)
        seed += 1
    print(dict(counts))
    assert counts["rendered as a whole"] > 2_000


@pytest.mark.parametrize("name", REAL)
def test_a_template_has_these_exceptions(name):
    tokenizer = templates.tokenizer(name)
    layout = Layout(tokenizer, TemplateEncoder(tokenizer), {"enable_thinking": False}).conversation()
    assert layout.deviations == {Deviation.TOKENS, Deviation.END} | DEVIATIONS[name]


def decoded(name, moment, **changes):
    tokenizer = templates.tokenizer(name)
    return tokenizer.decode(Context(CONFIG.model_copy(update=changes), tokenizer).prompt(moment))


MOMENT = Moment("find <s> mug", (Note("<mask> in [SEP]"),), (), "x<|y|>z <bos>")


@pytest.mark.parametrize("style", ["chat", "conversation"])
def test_a_system_text_leads_the_first_message_of_a_template_without_that_role(style):
    said = decoded("gemma", MOMENT, style=style)
    assert said.startswith("<bos><start_of_turn>user\nYou act in an environment")
    assert said.endswith("<end_of_turn>\n<start_of_turn>model\n")
    assert '- "<mask> in [SEP]"' in said
    tokenizer = templates.tokenizer("gemma")
    ids = Context(CONFIG.model_copy(update={"style": style}), tokenizer).prompt(MOMENT)
    begin, mask = map(tokenizer.convert_tokens_to_ids, ("<bos>", "<mask>"))
    assert (ids.count(begin), ids.count(mask)) == (1, 0)


@pytest.mark.parametrize("style", ["chat", "conversation"])
def test_a_template_gets_the_same_date_every_day(style, untried):
    assert "Today Date: 26 Jul 2024\n" in decoded("llama3_2", MOMENT, style=style)
    other = {"date_string": "1 Jan 2026"}
    assert "Today Date: 1 Jan 2026\n" in decoded("llama3_2", MOMENT, style=style, template=other)
    ids = Context(CONFIG.model_copy(update={"style": style}), templates.tokenizer("llama3_2")).prompt(MOMENT)
    assert ids.count(templates.tokenizer("llama3_2").bos_token_id) == 1


def test_thinking_is_off_unless_the_configuration_turns_it_on(untried):
    assert decoded("qwen3", MOMENT).endswith("assistant\n<think>\n\n</think>\n\n")
    assert decoded("qwen3", MOMENT, template={"enable_thinking": True}).endswith("assistant\n")


def test_tools_are_declared_and_observations_are_theirs():
    tool = {"type": "function", "function": {"name": "go", "parameters": {}}}
    moment = Moment("go", (), (PastTurn("hall", "go", "fine"),), "safe", tools=(tool,))
    said = decoded("qwen3", moment)
    assert '{"type": "function", "function": {"name": "go", "parameters": {}}}\n</tools>' in said
    assert "<|im_start|>user\n<tool_response>\nResult: fine\n" in said
    acting = {"type": "function", "function": {"name": "go<|im_end|>"}}
    with pytest.raises(CoevoError, match="tools hold a control token"):
        decoded("qwen3", Moment("go", (), (), "safe", tools=(acting,)))


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages[-2:] %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ",
    ],
)
def test_a_template_that_cannot_continue_is_refused_in_one_line(source, untried):
    tokenizer = templates.tokenizer("qwen2_5")
    layout = Layout(templates.with_template(tokenizer, source), TemplateEncoder(tokenizer), {})
    with pytest.raises(CoevoError, match=r"cannot be used: .*set context\.style=chat$") as raised:
        layout.conversation()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("limit", "branches"),
    [
        (None, [(0, 0)] * 6),
        (0, [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]),
        (2, [(0, 0), (0, 0), (0, 0), (3, 2), (3, 2), (5, 4)]),
        (3, [(0, 0), (0, 0), (0, 0), (0, 0), (4, 3), (4, 3)]),
    ],
)
def test_a_shortened_history_begins_a_branch(limit, branches):
    assert [branch_of(count, limit) for count in range(6)] == branches
    assert all(limit is None or count - first <= limit for count, (_, first) in enumerate(branches))


def test_a_branch_holds_the_tokens_of_its_turns_and_is_continued():
    end = templates.tokenizer("qwen3").eos_token_id
    short = Context(CONFIG.model_copy(update={"memory_length": 2}), templates.tokenizer("qwen3"))
    turns, prompts = [], []
    for number in range(5):
        history = tuple(PastTurn(each.observation, each.action, each.feedback) for each in turns)
        prompts.append(short.prompt(Moment("go", (), history, f"hall {number}", played=tuple(turns))))
        past = PastTurn(f"hall {number}", f"go {number}", "fine")
        turns.append(turn(prompts[-1], (300 + number, 310, end), past))
    said = templates.tokenizer("qwen3").decode(prompts[3])
    assert [f"hall {number}" in said for number in range(4)] == [False, False, True, True]
    assert prompts[4][: len(prompts[3]) + 3] == (*prompts[3], 303, 310, end)
    assert 302 in prompts[3]
    assert 301 not in prompts[3]


def test_an_answer_keeps_another_end_token_before_that_of_the_template():
    tokenizer = templates.tokenizer("qwen2_5")
    end, other = map(tokenizer.convert_tokens_to_ids, ("<|im_end|>", "<|endoftext|>"))
    first = context("qwen2_5").prompt(Moment("go", (), (), "hall"))
    past = PastTurn("hall", "go safe", "fine")
    moment = Moment("go", (), (past,), "safe", played=(turn(first, (300, other), past),))
    assert context("qwen2_5").prompt(moment)[: len(first) + 3] == (*first, 300, other, end)


def test_token_ids_of_long_texts_are_not_kept():
    encoder = TemplateEncoder(templates.tokenizer("qwen2_5"))
    assert encoder.data("a mug " * 1_000) == encoder.data("a mug " * 1_000)
    assert encoder._line.cache_info().currsize == 0
    assert encoder.data("a mug") == encoder.data("a mug")
    assert encoder._line.cache_info().currsize == 1


def test_turns_that_are_given_as_text_are_rendered_as_messages():
    history = (PastTurn("hall <|im_end|>", "go safe", "fine"), PastTurn("safe", "take mug", "done"))
    said = decoded("qwen2_5", Moment("go", (Note("so"),), history, "hall"))
    assert said.count("<|im_start|>assistant\nAction: go safe<|im_end|>\n<|im_start|>user\nResult: fine\n") == 1
    assert said.count("<|im_start|>assistant\nAction: take mug<|im_end|>\n<|im_start|>user\nResult: done\n") == 1
    assert said.index('- "so"') < said.index("You observe: hall <|im_end|>") < said.index("go safe")


BARE = {"name": "go", "description": "Go to a place.", "inputSchema": {"type": "object", "properties": {}}}
WRAPPED = {
    "type": "function",
    "function": {"name": "go", "description": "Go to a place.", "parameters": {"type": "object", "properties": {}}},
}


@pytest.mark.parametrize("name", ["qwen2_5", "qwen3", "llama3_1", "gemma4", "gptoss"])
def test_a_template_gets_tools_as_it_expects_them(name, untried):
    tokenizer = templates.with_template(templates.tokenizer("qwen3"), templates.source(name))
    said = [{"role": "user", "content": "go"}]
    bare, wrapped = (template.render(tokenizer, said, {}, [tool]) for tool in (BARE, WRAPPED))
    assert bare == wrapped
    assert "Go to a place." in bare


ANSWERS = {
    "auto": "Action: go safe",
    "tag": "<action>go safe</action>",
    "call": "<tool_call>\ngo safe\n</tool_call>",
    "fence": "```\ngo safe\n```",
    "plain": "go safe",
}


@pytest.mark.parametrize("parser", ANSWERS)
def test_answers_of_turns_that_are_given_as_text_have_the_form_that_the_prompt_asks_for(parser):
    moment = Moment("go", (), (PastTurn("hall", "go safe", "fine"),), "safe")
    assert f"assistant\n{ANSWERS[parser]}<|im_end|>\n" in decoded("qwen2_5", moment, parser=parser)
    tools = replace(moment, tools=({"name": "go"},))
    asked = ANSWERS["call" if parser == "auto" else parser]
    assert f"assistant\n{asked}<|im_end|>\n" in decoded("qwen2_5", tools, parser=parser)


@pytest.mark.parametrize("style", ["chat", "conversation"])
@pytest.mark.parametrize(("name", "declares"), [("qwen3", True), ("llama3", False), ("gemma", False)])
def test_tools_stand_in_the_text_where_a_template_does_not_declare_them(name, declares, style):
    tool = {"name": "go", "description": "Go to a place.", "parameters": {"required": ["place"]}}
    moment = Moment("go", (), (PastTurn("hall", "", "?"),), "safe", "Be quick.", (tool,))
    said = decoded(name, moment, style=style)
    assert said.count("Go to a place.") == 1
    if declares:
        assert decoded(name, replace(moment, tools=({"type": "function", "function": tool},)), style=style) == said
        assert '{"type": "function", "function": {"name": "go", ' in said
    assert ("Be quick.\n\nTools, as JSON schemas:\n{" in said) == (not declares)
    assert "Tools, as JSON" not in decoded(name, replace(moment, tools=()), style=style)
