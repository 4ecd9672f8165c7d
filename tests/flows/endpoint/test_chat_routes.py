"""A packaged agent as clients of chats ask it: equal requests get equal answers, and what cannot be done is refused."""

import json
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from openai import OpenAI
from support.endpoint import ROW, post, rows
from support.gateway import TOKENS, chat_run, listening, served
from support.small_run import MICROWAVE, MUG

from coevo.tasks.gateway.chat_agent import ChatAgent
from coevo.utilities.errors import CoevoError

ASK = [{"role": "user", "content": "house lotus . task heat mug to counter"}]
TASK = {"task": {"scope": "lotus", "instruction": ASK[0]["content"]}}
IDS = {"return_token_ids": True}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return chat_run(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def url(workspace):
    with served(workspace, "household/3") as reached:
        yield reached


def client(url, session=""):
    return OpenAI(base_url=f"{url}{session and f'/s/{session}'}/v1", api_key="none", max_retries=0)


def asked(url, messages=ASK, session="", body=None, **more):
    create = client(url, session).chat.completions.create
    return create(model="coevo", messages=messages, extra_body=IDS | (body or {}), **more)


def ids(reply):
    return [choice.token_ids for choice in reply.choices]


def messages(url, body, path="/v1/messages"):
    status, said = post(url, json.dumps({"model": "m", "max_tokens": 5, "messages": ASK} | body).encode(), path=path)
    return status, json.loads(said)


def test_both_dialects_show_lessons_and_say_where_the_answer_is_from(url):
    create = client(url).chat.completions.with_raw_response.create
    response = create(model="coevo", messages=ASK, extra_body=TASK)
    stamp = response.parse().coevo
    assert set(stamp["entries"]) == {MUG.id, MICROWAVE.id}
    assert (stamp["policy"], stamp["bank"], stamp["mode"]) == ("first@3", "first@3", "evaluation")
    assert response.headers["x-coevo-entries"].split(",") == stamp["entries"]
    status, message = messages(url, TASK)
    assert (status, message["coevo"]["entries"]) == (200, stamp["entries"])
    assert stamp["no_lesson"] == message["coevo"]["no_lesson"] == ""
    assert asked(url).coevo["entries"] == []  # no lesson is without a scope


LACKING = {
    "none": ({}, "no scope is given, and lessons belong to one, such as 'lotus'"),
    "null": ({"task": None}, "no scope is given"),
    "an empty one": ({"task": {"scope": ""}}, "no scope is given"),
    "only a kind": ({"task": {"kind": "heat"}}, "no scope is given"),
    "a letter less": ({"task": {"scope": "lotu"}}, "no lesson of scope 'lotu'. Did you mean 'lotus'?"),
    "two swapped": ({"task": {"scope": "lotsu"}}, "Did you mean 'lotus'?"),
    "a capital": ({"task": {"scope": "Lotus"}}, "Did you mean 'lotus'?"),
    "a blank": ({"task": {"scope": "lotus "}}, "Did you mean 'lotus'?"),
    "a break": ({"task": {"scope": "lotus\n"}}, "Did you mean 'lotus'?"),
    "another world's": ({"task": {"scope": "willow"}}, "the bank has no lesson of scope 'willow'."),
    "unknown words": ({"task": {"scope": "lotus", "instruction": "xyzzy"}}, "no lesson of scope 'lotus' matches"),
}


@pytest.mark.parametrize("case", LACKING)
def test_a_reply_without_lessons_says_why(url, case):
    body, said = LACKING[case]
    stamp = asked(url, body=body).coevo
    assert (stamp["entries"], said in stamp["no_lesson"], "\n" in stamp["no_lesson"]) == ([], True, False), stamp
    assert messages(url, body)[1]["coevo"]["no_lesson"] == stamp["no_lesson"]


@pytest.mark.parametrize("field", ["scop", "Scope", "kinds", "instructions", "ids"])
def test_a_misspelt_field_of_a_task_is_refused_with_the_nearest_name(url, field):
    status, said = messages(url, {"task": {field: "lotus"}})
    assert (status, f"task.{field}: no such field. Did you mean" in said["error"]["message"]) == (422, True), said


def test_equal_requests_get_equal_answers_and_other_seeds_and_sessions_others(url):
    first = asked(url, n=2, seed=3)
    assert ids(asked(url, n=2, seed=3)) == ids(first)
    assert len({tuple(each) for each in (*ids(first), *ids(asked(url, seed=4)), *ids(asked(url, session="a")))}) == 4
    assert ids(asked(url, session="twice", n=2)) == ids(asked(url, session="twice", n=2))
    streamed = client(url).chat.completions.create(model="m", messages=ASK, seed=3, n=2, stream=True, extra_body=IDS)
    ends = [choice for chunk in streamed for choice in chunk.choices if choice.finish_reason]
    assert [choice.token_ids for choice in ends] == ids(first)


def test_a_session_draws_as_at_the_gateway_and_continues_its_tokens(url, workspace):
    with listening(workspace) as gateway:
        opened = gateway.openai("one").chat.completions.create(model="m", messages=ASK, extra_body=IDS)
        first = asked(url, session="one")
        assert ids(first) == ids(opened)
    said = first.choices[0].message.model_dump(exclude_none=True)
    history = [*ASK, said, {"role": "user", "content": "and then?"}]
    before = [*first.prompt_token_ids, *ids(first)[0]]
    continued, alone = asked(url, history, "one"), asked(url, history)
    assert continued.prompt_token_ids[: len(before)] == before
    assert continued.coevo["turns"][0]["number"] == 1
    assert alone.coevo["turns"][0]["number"] == 0


def test_an_answer_that_was_cut_off_is_not_parsed_and_log_probs_come_on_request(url):
    reply = asked(url, max_tokens=3, logprobs=True)
    (turn,) = reply.coevo["turns"]
    assert (turn["parsed"], turn["fault"]) == (False, "cut off")
    assert len(reply.choices[0].logprobs.content) == len(ids(reply)[0]) == 3
    assert asked(url).choices[0].logprobs is None


def test_rows_of_turns_have_log_probs_on_request(url):
    plain, full = (
        json.loads(post(url, rows(ROW, params={"seed": 5, **more}))[1])["predictions"][0]
        for more in ({}, {"logprobs": True})
    )
    drawn = full.pop("logprobs")
    assert full == plain
    assert 0 < len(drawn) <= TOKENS
    assert all(each["logprob"] <= 0 and isinstance(each["token"], str) for each in drawn)


def test_rows_and_chats_side_by_side_are_answered_as_alone(url):
    def row(seed):
        return json.loads(post(url, rows(ROW, params={"seed": seed}))[1])["predictions"]

    def chat(seed):
        return ids(asked(url, seed=seed))

    alone = [(row(seed), chat(seed)) for seed in range(4)]
    with ThreadPoolExecutor(8) as pool:
        both = list(zip(pool.map(row, [*range(4)] * 2), pool.map(chat, [*range(4)] * 2), strict=True))
    assert both == alone * 2


REFUSED = {
    "another temperature": ({"temperature": 0.0}, 422, "temperature: the settings of the policy's run decide this (te"),
    "another nucleus": ({"top_p": 0.5}, 422, "leave it out"),
    "reasoning": ({"extra_body": {"reasoning_effort": "low"}}, 422, "reasoning_effort: the settings of"),
    "a bias": ({"logit_bias": {"5": 1}}, 422, "logit_bias: no such field. Leave it out."),
    "a misspelt field": ({"extra_body": {"max_token": 3}}, 422, "max_token: no such field. Did you mean 'max_tokens'?"),
    "a misspelt part": ({"extra_body": {"task": {"scpe": "x"}}}, 422, "Did you mean 'scope'?"),
    "another revision": ({"model": "first@2"}, 404, "serves first@3, registered as household/3, and no other"),
    "another version": ({"model": "household/2"}, 404, "and no other"),
    "an alias that moves": ({"model": "household@champion"}, 404, "and no other"),
    "too long": ({"messages": [{"role": "user", "content": "mug " * 5000}]}, 400, "tokens, and the policy attends to"),
}


@pytest.mark.parametrize(("more", "status", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_refused_in_one_line(url, more, status, said):
    with pytest.raises(openai.APIStatusError) as refused:
        client(url).chat.completions.create(**{"model": "coevo", "messages": ASK, **more})
    assert refused.value.status_code == status
    message = refused.value.body["message"]
    assert said in message
    assert "\n" not in message


def test_what_is_served_may_be_named_and_settings_of_the_run_may_be_repeated(url):
    for model in ("first@3", "household/3", "gpt-4o"):
        assert client(url).chat.completions.create(model=model, messages=ASK, temperature=1.0, top_p=1).choices
    assert [each.id for each in client(url).models.list()] == ["first@3"]


def test_pages_of_other_origins_are_refused(url):
    body = json.dumps({"model": "m", "messages": ASK}).encode()
    path = "/v1/chat/completions"
    assert post(url, body, {"Origin": "http://evil.example"}, path)[0] == 403
    assert post(url, body, {"Content-Type": "text/plain"}, path)[0] == 415
    assert post(url, body, path=f"/s/{'a' * 101}{path}")[0] == 400


@pytest.mark.parametrize("error", [CoevoError("the engine is gone"), RuntimeError("in the engine")], ids=["own", "any"])
def test_a_stream_whose_answer_fails_ends_with_an_event_and_not_in_the_middle(url, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(ChatAgent, "draw", fail)
    body = json.dumps({"model": "m", "messages": ASK, "stream": True}).encode()
    status, said = post(url, body, path="/v1/chat/completions")
    event = json.loads(said.decode().partition("data: ")[2])
    assert status == 200 and event["error"]["message"].startswith("the policy failed: ")
    assert "the engine is gone" in said.decode() or isinstance(error, RuntimeError)
