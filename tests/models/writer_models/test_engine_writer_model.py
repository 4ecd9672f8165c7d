"""Writer models that generate with an engine: equal questions, long ones, and control tokens in them."""

from dataclasses import replace

import pytest
import torch
from support.templates import names, tokenizer
from support.writer_models import model, question

from coevo.configs.bank.writer_model_config import PolicyWriterModelConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, TransformersEngineConfig
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.writer_models import engine_writer_model as module
from coevo.models.writer_models.engine_writer_model import EngineWriterModel
from coevo.records.episode import Completion
from coevo.utilities.errors import CoevoError

OFF = {"enable_thinking": False}
QUESTIONS = [question(f"why did attempt {number} fail?" * (number % 3 + 1)) for number in range(6)]


@pytest.fixture(scope="module")
def engine():
    return TransformersEngine(model(), TransformersEngineConfig(), SamplingConfig(max_new_tokens=4))


def writer_model(engine, template=OFF, seed=0, threads=None, **settings):
    settings = {"max_new_tokens": 24, **settings}
    return EngineWriterModel(PolicyWriterModelConfig(**settings), engine, template, seed, threads)


def replies(made, questions):
    found = dict(made.replies(questions))
    return [found[place] for place in range(len(questions))]


class Scripted:
    """Engine that gives one text, or fails, and keeps what it was asked."""

    longest_prompt = 2**20

    def __init__(self, text="x", error=None):
        self.policy, self.text, self.error, self.asked = model(), text, error, []

    def with_sampling(self, sampling):
        self.sampling = sampling
        return self

    def forget(self):
        self.asked.append("forget")

    def generate(self, requests):
        self.asked.append(list(requests))
        if self.error:
            raise self.error
        return [Completion((1, 2), (-0.1, -0.1), self.text, True) for _ in requests]


def test_answers_are_those_of_the_model_to_the_rendered_question(engine):
    asked = [replace(each, user=f" {each.user}\n") for each in QUESTIONS]
    found = replies(writer_model(engine, seed=3), asked)
    words = engine.policy.tokenizer
    assert len({reply.text for reply in found}) == len(found)
    for reply, each in zip(found, asked, strict=True):
        messages = [{"role": "system", "content": each.system}, {"role": "user", "content": each.user}]
        text = words.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **OFF)
        ids = words(text, add_special_tokens=False)["input_ids"]
        assert (reply.prompt_tokens, reply.drawn.prompt_ids) == (len(ids), tuple(ids))
        assert len(reply.drawn.token_ids) == reply.answer_tokens
        assert 0 < reply.answer_tokens <= 24 and not reply.fault


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equal_questions_get_equal_answers_whatever_the_batch(dtype, monkeypatch):
    policy = model()
    policy.model.to(dtype)
    engine = TransformersEngine(policy, TransformersEngineConfig(), SamplingConfig(max_new_tokens=4))
    made = writer_model(engine)
    whole = replies(made, [*QUESTIONS, QUESTIONS[0]])
    assert whole[-1] == whole[0]
    assert replies(made, QUESTIONS[::-1]) == whole[-2::-1]
    assert [replies(made, [each])[0] for each in QUESTIONS] == whole[:-1]
    monkeypatch.setattr(module, "BATCH", 2)
    assert replies(writer_model(engine), QUESTIONS) == whole[:-1]
    assert replies(writer_model(engine, seed=1), QUESTIONS) != whole[:-1]
    assert replies(writer_model(engine), [replace(QUESTIONS[0], task="other")]) != whole[:1]


def test_the_engine_of_the_run_is_left_as_it_was(engine):
    before = (engine.longest_prompt, engine._sampler, engine._tree)
    list(writer_model(engine, temperature=0.5).replies(QUESTIONS))
    assert (engine.longest_prompt, engine._sampler, engine._tree) == before
    assert engine._tree.size == 0


def test_each_batch_is_computed_by_itself_and_bounded():
    scripted = Scripted()
    asked = [question(str(number)) for number in range(module.BATCH + 1)]
    assert len(replies(writer_model(scripted, temperature=0.3), asked)) == len(asked)
    assert scripted.sampling == SamplingConfig(temperature=0.3, max_new_tokens=24)
    kinds = ["forget" if call == "forget" else len(call) for call in scripted.asked]
    assert kinds == ["forget", module.BATCH, "forget", "forget", 1, "forget"]


NAME = "bank.writer.model.max_new_tokens"


def test_a_question_that_is_too_long_is_a_fault_with_both_lengths_and_no_room_for_any_is_one_line(engine):
    asked = [QUESTIONS[0], question("why? " * 2000), QUESTIONS[1]]
    first, long, last = replies(writer_model(engine), asked)
    assert [first, last] == replies(writer_model(engine), QUESTIONS[:2])
    most = 1024 - 24
    assert long.fault.endswith(f"and the model attends to {most} before an answer of {NAME}=24")
    assert int(long.fault.split()[3]) > most and long.text == ""
    with pytest.raises(CoevoError, match=rf"{NAME}=1024 leaves no room .* attends to 1024 tokens; lower"):
        writer_model(engine, max_new_tokens=1024)


@pytest.mark.parametrize("template", ["qwen3", "llama3"])
def test_control_tokens_in_a_question_do_not_act(template):
    """The prompt is that of a tokenizer to which they are plain text."""
    made = [Scripted(), Scripted()]
    for scripted, twin in zip(made, (False, True), strict=True):
        scripted.policy = replace(scripted.policy, tokenizer=tokenizer(template, twin))
        hostile = question(f"done{''.join(names(template))}\nnow", system="".join(names(template)))
        list(writer_model(scripted, template={}).replies([hostile]))
    (one,), (other,) = (scripted.asked[1] for scripted in made)
    control = set(map(made[0].policy.tokenizer.convert_tokens_to_ids, names(template)))
    plain = [token for token in one.prompt_ids if token in control]
    bare = Scripted()
    bare.policy = made[0].policy
    list(writer_model(bare, template={}).replies([question("x", system="y")]))
    assert plain == [token for token in bare.asked[1][0].prompt_ids if token in control]
    assert one.prompt_ids == other.prompt_ids


THOUGHTS = {
    "thought": ("<think>\nhm\n</think>\n\nlook first", OFF, "look first"),
    "opened by the template": ("hm\n</think>\n\nlook first", {}, "look first"),
    "without an end": ("<think>\nhm", OFF, ""),
    "none": ("look first\n", OFF, "look first"),
}


@pytest.mark.parametrize(("text", "template", "answer"), THOUGHTS.values(), ids=THOUGHTS)
def test_thinking_is_no_part_of_an_answer(text, template, answer):
    (reply,) = replies(writer_model(Scripted(text), template), [question()])
    assert (reply.text, reply.answer_tokens) == (answer, 2)


def test_an_engine_that_fails_is_a_fault_of_each_question():
    found = replies(writer_model(Scripted(error=CoevoError("the server is gone"))), QUESTIONS)
    assert {reply.fault for reply in found} == {"the server is gone"}


def test_what_is_not_answered_in_time_is_a_fault(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 1)
    scripted = Scripted()
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    scripted.forget = lambda: now.append(now.pop() + 0.06)
    found = replies(writer_model(scripted, seconds=0.1), QUESTIONS[:3])
    assert [reply.text for reply in found] == ["x", "", ""]
    assert found[2].fault == "no time was left of bank.writer.model.seconds=0.1"


def test_closing_leaves_out_what_is_not_answered_yet(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 1)
    scripted = Scripted()
    iterator = writer_model(scripted).replies(QUESTIONS)
    next(iterator)
    iterator.close()
    assert len([call for call in scripted.asked if call != "forget"]) == 1


def test_threads_are_the_writer_models_while_it_generates_and_the_runs_again_afterwards(monkeypatch):
    scripted, seen, before = Scripted(), [], torch.get_num_threads()
    monkeypatch.setattr(scripted, "forget", lambda: seen.append(torch.get_num_threads()))
    replies(writer_model(scripted, threads=before + 1), QUESTIONS[:1])
    assert seen == [before + 1] * 2
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("said", ["why? ", "größer 漢字 😀 ", "{}[]\n"])
def test_a_question_that_fills_the_room_is_answered_and_leaves_next_to_none(said):
    made = writer_model(
        TransformersEngine(model(positions=512), TransformersEngineConfig(), SamplingConfig(max_new_tokens=4))
    )
    room, user = made.room(), said
    while room.of(question(user + said)) >= 0:
        user += said
    (reply,) = replies(made, [question(user)])
    assert not reply.fault
    assert 0 <= 512 - 24 - reply.prompt_tokens <= 8 + len(said.encode())
