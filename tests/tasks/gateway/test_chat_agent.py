"""Clients of both dialects talk to an agent in every way that a dialect allows, and every token is the drawn one."""

import asyncio
import json
import random
from contextlib import closing
from dataclasses import replace
from itertools import chain

import pytest
from openai.types.chat import ChatCompletion
from support.small_run import MICROWAVE, MUG
from support.worker import environment, worker
from support.writer_models import model

from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.context_config import ContextConfig
from coevo.flows.endpoint.anthropic_dialect import Anthropic
from coevo.flows.endpoint.dialect import ChatReply
from coevo.flows.endpoint.openai_dialect import OpenAI
from coevo.memory.retrieval.index import Index
from coevo.models.engines.requests import completions_of
from coevo.models.policy.context import Context
from coevo.models.policy.language_model import ends_of
from coevo.models.policy.message_prompts import MessagePrompts
from coevo.records.demonstration import Moment, Note, PastTurn
from coevo.records.draws import generator, key
from coevo.records.message import Message
from coevo.tasks.gateway import gateway_session
from coevo.tasks.gateway.chat_agent import PLACEHOLDER, ChatAgent, ChatRequest, PromptTooLongError, root_of
from coevo.tasks.gateway.draw_queue import DrawQueue
from coevo.tasks.gateway.gateway_session import GatewaySession
from coevo.tasks.gateway.memory_bound import FullError
from coevo.tasks.gateway.session_store import SessionTask
from coevo.tasks.play.retrieve import Given, Retrieved

TOOL = {"name": "go", "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}}
OPENAI_TOOL = {"type": "function", "function": TOOL}
ANTHROPIC_TOOL = {"name": "go", "input_schema": TOOL["parameters"]}
CALL = '<tool_call>\n{"name": "go", "arguments": {"place": "s<x>afe"}}\n</tool_call>'
SAID = (
    CALL,
    f"so \n{CALL}\n{CALL}",
    "plain",
    " blanks ",
    "",
    "<think>hm</think>x",
    "<|im_start|>user",
    "é😀",
    "<tool_call>{",
)


class Drawing:
    """Answers a request by one of ``SAID``, or by random tokens; notes what it was asked and drew."""

    def __init__(self):
        self.policy, self.longest_prompt, self.drawn = model("qwen3"), 200_000, []
        self._ends = ends_of(self.policy)

    def generate(self, requests):
        return [self._complete(request) for request in requests]

    def generate_to(self, requests, listeners):
        return [self._heard(each, listener) for each, listener in zip(self.generate(requests), listeners, strict=True)]

    def _heard(self, whole, listener):
        """A completion up to where its listener ends it; it hears the first half twice, as after a failure."""
        ids = whole.token_ids
        for again in (len(ids) // 2, len(ids)):
            count = next((at + 1 for at in range(again) if listener and not listener(at, ids[at])), again)
        drawn = list(zip(ids, whole.logprobs, strict=True))[:count]
        return completions_of(self.policy.tokenizer, self._ends, [drawn])[0]

    def _complete(self, request):
        draw, words = generator(request.key), self.policy.tokenizer
        if draw.random() < 0.5:
            ids = words(SAID[draw.integers(len(SAID))], add_special_tokens=False)["input_ids"]
        else:
            ids = draw.integers(0, len(words), draw.integers(0, 12)).tolist()
        ids = [each for each in ids if each not in self._ends]
        ids += [self._ends[-1]] if draw.random() < 0.7 or not ids else []
        drawn = [(each, -float(draw.random())) for each in ids]
        self.drawn.append((request.prompt_ids, tuple(ids), tuple(value for _, value in drawn)))
        return completions_of(words, self._ends, [drawn])[0]


@pytest.fixture(scope="module")
def parts():
    engine = Drawing()
    queue = DrawQueue(engine, 64)
    words, config = engine.policy.tokenizer, ContextConfig(style="chat")
    agent = ChatAgent(
        engine, queue, Context(config, words), MessagePrompts(words, config.template), None, root_of(1, 2)
    )
    yield agent, engine
    queue.close()


def session(name="s"):
    return GatewaySession(name, "training", "", SessionTask())


async def exchange(agent, talk, dialect, body):
    """The answers to a body, and the document that the client gets."""
    call = dialect.parse(json.dumps(body).encode())
    prompted = await agent.prompt(talk, call.chat)
    stream = agent.stream(call.chat) if call.stream else None
    answers = await agent.draw(talk, call.chat, prompted, stream)
    reply = ChatReply("1", 0, "first@3", prompted.prompt_ids, tuple(answers), {})
    events = dialect.stream(call, replace(reply, answers=()))
    begun = [events.piece(*stream.pieces.get_nowait()) for _ in range(stream.pieces.qsize())] if stream else []
    streamed = b"".join(chain(*begun, events.rest(reply))).decode()
    assert text_in(streamed) == "".join(answer.turn.answer.text for answer in answers)
    return answers, dialect.document(call, reply), streamed


def text_in(streamed):
    """Texts of all answers in a stream of either dialect, one after the other."""
    texts = {}
    for line in streamed.splitlines():
        if line.startswith("data: {"):
            document = json.loads(line.removeprefix("data: "))
            deltas = [(each["index"], each["delta"].get("content")) for each in document.get("choices", ())]
            for index, text in deltas or [(0, document.get("delta", {}).get("text"))]:
                texts[index] = texts.get(index, "") + (text or "")
    return "".join(texts[index] for index in sorted(texts))


def openai_echo(document, rng):
    """An answer as OpenAI's client repeats it, or as a framework does that writes it anew."""
    message = ChatCompletion.model_validate(document).choices[rng.randrange(len(document["choices"]))].message
    said = message.model_dump(exclude_none=rng.random() < 0.5)
    for call in said.get("tool_calls") or ():
        call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), indent=1)
    if said.get("content") and rng.random() < 0.3:
        said["content"] = [{"type": "text", "text": said["content"]}]
    return said


def openai_body(history, rng):
    return {"model": "m", "messages": history, "tools": [OPENAI_TOOL], "n": rng.choice([1, 1, 2]), "stream": True}


def openai_next(said, rng):
    calls = said.get("tool_calls") or ()
    results = [{"role": "tool", "tool_call_id": call["id"], "content": rng.choice(SAID)} for call in calls]
    return results if results and rng.random() < 0.7 else [*results, {"role": "user", "content": rng.choice(SAID)}]


def anthropic_echo(document, rng):
    return {"role": "assistant", "content": document["content"]}


def anthropic_body(history, rng):
    return {"model": "m", "max_tokens": 9, "messages": history, "system": "s", "tools": [ANTHROPIC_TOOL],
            "stream": rng.random() < 0.5}  # fmt: skip


def anthropic_next(said, rng):
    uses = [each for each in said["content"] if each["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": use["id"], "content": rng.choice(SAID)} for use in uses]
    return [{"role": "user", "content": [*results, {"type": "text", "text": rng.choice(SAID)}]}]


WAYS = {
    "openai": (OpenAI(), openai_body, openai_echo, openai_next),
    "anthropic": (Anthropic(), anthropic_body, anthropic_echo, anthropic_next),
}


async def talk_for(turns, agent, engine, way, seed):
    """Let a client play; it rewrites its history now and then. Returns the number of checked answers."""
    dialect, body, echo, following = WAYS[way]
    rng, checked = random.Random(seed), 0
    while checked < turns:
        talk, history = session(f"{way}-{seed}-{checked}"), [{"role": "user", "content": rng.choice(SAID)}]
        for _ in range(12):
            before = len(engine.drawn)
            answers, document, streamed = await exchange(agent, talk, dialect, body(history, rng))
            for answer, (prompt, ids, logprobs) in zip(answers, engine.drawn[before:], strict=True):
                turn = answer.turn
                kept = len(turn.token_ids)  # a limit of the request may cut the answer
                assert (turn.prompt_ids, tuple(turn.token_ids), tuple(turn.logprobs)) == (
                    prompt,
                    ids[:kept],
                    logprobs[:kept],
                )
                if turn.parent is not None:
                    assert prompt[: len(turn.parent.prompt_ids)] == turn.parent.prompt_ids
                    behind = prompt[len(turn.parent.prompt_ids) :]
                    assert behind[: len(turn.parent.token_ids)] == tuple(turn.parent.token_ids)
                for call in turn.answer.calls:
                    assert json.loads(call.arguments) == {"place": "s<x>afe"}
                    assert call.name in streamed
                checked += 1
            if len(history) > 1 and rng.random() < 0.2:
                history = [{"role": "user", "content": "again"}, *history[1:]]
                continue
            said = echo(document, rng)
            history = [*history, said, *following(said, rng)]
            # A client that repeats an answer continues it.
            match = talk.tree.match(
                dialect.parse(json.dumps(body(history, rng)).encode()).chat.messages, answers[0].turn.tools
            )
            assert match.parent is not None
            assert match.parent.answer in [answer.turn.answer for answer in answers]
    return checked


@pytest.mark.parametrize("way", WAYS)
def test_tokens_kept_are_the_tokens_drawn(parts, way):
    assert asyncio.run(talk_for(250, *parts, way, 1)) >= 250


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
def test_ten_thousand_tokens_kept_are_the_tokens_drawn(parts, way):
    assert asyncio.run(talk_for(10_000, *parts, way, 2)) >= 10_000


def ask(agent, talk, *messages, **more):
    async def both():
        request = ChatRequest(messages, **more)
        prompted = await agent.prompt(talk, request)
        return await agent.draw(talk, request, prompted)

    return asyncio.run(both())


def test_draws_depend_on_session_and_prompt_alone(parts):
    agent, _ = parts
    hello, other = Message("user", "hello"), Message("user", "other")

    def drawn(answers):
        return [(tuple(each.turn.token_ids), tuple(each.turn.logprobs)) for each in answers]

    first, second = session("a"), session("a")
    here = [*drawn(ask(agent, first, hello)), *drawn(ask(agent, first, other)), *drawn(ask(agent, first, hello))]
    there = [*drawn(ask(agent, second, other)), *drawn(ask(agent, second, hello, count=2))]
    assert [here[0], here[2], here[1]] == [there[1], there[2], there[0]]
    assert here[0] != here[2]
    assert drawn(ask(agent, session("b"), hello))[0] != here[0]
    assert drawn(ask(agent, session("a"), hello, seed=5))[0] != here[0]


def test_an_overlong_prompt_is_refused_before_it_is_drawn(parts):
    agent, engine = parts
    before = len(engine.drawn)
    with pytest.raises(PromptTooLongError, match="tokens, and the policy attends to"):
        ask(agent, session(), Message("user", "x y " * 200_000))
    assert len(engine.drawn) == before


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (ChatRequest((Message("user", "x"),) * 200_001), "200001 messages"),
        (ChatRequest((Message("user", "x" * 129 * 200_000),)), "characters of messages and tools"),
        (ChatRequest((Message("user", "x"),), tools=f'["{"x" * 129 * 200_000}"]'), "characters of messages and tools"),
    ],
    ids=["messages", "characters", "tools"],
)
def test_what_cannot_fit_is_refused_before_it_is_written(parts, asked, said, monkeypatch):
    agent, _ = parts
    monkeypatch.setattr(MessagePrompts, "opening", lambda *_: pytest.fail("it was written"))
    with pytest.raises(PromptTooLongError, match=said):
        asyncio.run(agent.prompt(session(), asked))


def test_answers_of_parallel_requests_have_one_bound(parts, monkeypatch):
    monkeypatch.setattr(gateway_session, "ANSWERS", 20)
    (agent, _), talk, asked = parts, session("parallel"), ChatRequest((Message("user", "hello"),), count=8)

    async def all_at_once():
        prompted = await agent.prompt(talk, asked)
        return await asyncio.gather(*(agent.draw(talk, asked, prompted) for _ in range(4)), return_exceptions=True)

    found = asyncio.run(all_at_once())
    assert [isinstance(each, FullError) for each in found] == [False, False, True, True]
    assert len(talk.tree.turns) == 16


def test_an_answer_has_its_seconds_and_the_scores_of_the_lessons_that_its_messages_show(parts):
    engine = parts[1]
    index = Index([MUG, MICROWAVE], BankConfig().retrieval)
    with closing(DrawQueue(engine, 8)) as queue:
        words, config = engine.policy.tokenizer, ContextConfig(style="chat")
        prompts = MessagePrompts(words, config.template)
        agent = ChatAgent(engine, queue, Context(config, words), prompts, index, root_of(1, 2))
        talk = GatewaySession("scored", "training", "", SessionTask(instruction="find the mug", scope="lotus"))
        (answer,) = ask(agent, talk, Message("user", "find the lotus mug"))
    assert answer.turn.entries
    assert isinstance(talk.experience, Retrieved)
    known = talk.experience.scores(talk.task, "find the lotus mug")
    assert answer.turn.scores == tuple(known[entry] for entry in answer.turn.entries)
    assert answer.turn.drawing > 0


def test_a_loop_of_ones_own_writes_the_prompts_of_the_built_in_one():
    """In the style of the laptop's policies, a message with the place of the lessons is the whole prompt."""
    engine = worker().engine
    context, env = worker().context, environment()
    (task,) = env.sample(1, key("own loop"))
    lessons = [replace(each, scope=task.scope) for each in (MUG, MICROWAVE)]
    queue = DrawQueue(engine, 8)
    agent = ChatAgent(engine, queue, context, MessagePrompts(engine.policy.tokenizer, {}), None, root_of(1, 2))
    talk = GatewaySession("own", "training", "", SessionTask(id=task.id, instruction=task.instruction))
    talk.experience = Given({task.id: tuple(lessons)})
    history = [PastTurn("at hall hold nothing", "go safe", "see mug")]
    for past in ([], history):
        recent = "".join(f" > {turn.action} : {turn.feedback}" for turn in past)
        said = f"{task.instruction} . {PLACEHOLDER} recent{recent} . at hall hold nothing ."
        (answer,) = ask(agent, talk, Message("user", said))
        notes = tuple(map(Note.of, lessons))
        moment = Moment(task.instruction, notes, tuple(past), "at hall hold nothing")
        assert answer.turn.prompt_ids == context.prompt(moment)
        assert answer.turn.entries == tuple(entry.id for entry in lessons)
        assert answer.turn.parent is None
    queue.close()
