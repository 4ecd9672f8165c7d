"""Clients of both dialects ask over a socket: tokens kept are tokens drawn, and each answer says its origin."""

import http.client
import json
from urllib.parse import urlsplit

import openai
import pytest
from support.gateway import TOKENS, chat_run, listening
from support.small_run import HEAT, MICROWAVE, MUG, SAFE
from support.templates import tokenizer

ASK = [{"role": "user", "content": "house lotus . task heat mug to counter"}]
TOOL = {"type": "function", "function": {"name": "go", "parameters": {"type": "object", "properties": {}}}}
IDS = {"return_token_ids": True}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with listening(chat_run(tmp_path_factory.mktemp("gateway"))) as reached:
        yield reached


def post(gateway, path, body, token=None, headers=(), method="POST"):
    """Status, document and headers of an answer."""
    parts = urlsplit(gateway.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    given = {"Authorization": f"Bearer {gateway.token if token is None else token}", **dict(headers)}
    connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body), given)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text), dict(answer.getheaders())


def opened(gateway, name, **settings):
    status, document, _ = post(gateway, f"/s/{name}", settings)
    assert status == 200, document
    return document


def ended(gateway, name, reward=1.0, success=True):
    return post(gateway, f"/s/{name}/outcome", {"reward": reward, "success": success})[:2]


def asked(client, messages=ASK, **more):
    return client.chat.completions.create(model="coevo", messages=messages, extra_body=IDS, **more)


def place(stamp):
    """Number and branch of the only answer."""
    (turn,) = stamp["turns"]
    return turn["number"], turn["branch"]


def streamed(client, messages, **more):
    """Text, and token ids by choice, of an answer in pieces."""
    texts, ids, prompt = {}, {}, None
    for chunk in client.chat.completions.create(model="any", messages=messages, stream=True, extra_body=IDS, **more):
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            if choice.finish_reason:
                ids[choice.index] = choice.token_ids
    return texts, ids, prompt


def test_a_conversation_continues_the_tokens_that_were_drawn(gateway):
    client, messages, before = gateway.openai("talk"), list(ASK), ()
    for turn in range(4):
        reply = asked(client, messages)
        (choice,) = reply.choices
        assert tuple(reply.prompt_token_ids[: len(before)]) == before
        before = (*reply.prompt_token_ids, *choice.token_ids)
        said = choice.message.model_dump(exclude_none=True)
        messages += [said, {"role": "user", "content": f"and then? {turn}"}]
    assert ended(gateway, "talk") == (200, {"session": "talk", "end": "outcome"})
    kept = gateway.kept()["talk"]
    assert (*kept.prompt_ids(3), *kept.turns[3].token_ids) == before
    assert [turn.parent for turn in kept.turns] == [None, 0, 1, 2]
    assert all(len(turn.logprobs) == len(turn.token_ids) for turn in kept.turns)


def test_streams_tools_several_answers_and_rewritten_histories_are_kept_as_drawn(gateway):
    client, expected = gateway.openai("mixed"), []
    plain = asked(client, n=3, tools=[TOOL])
    expected += [(plain.prompt_token_ids, choice.token_ids) for choice in plain.choices]
    assert len({tuple(choice.token_ids) for choice in plain.choices}) == 3
    history = [*ASK, plain.choices[1].message.model_dump(exclude_none=True)]
    texts, ids, _ = streamed(client, [*history, {"role": "user", "content": "on"}], n=2, tools=[TOOL])
    rewritten = [*ASK, {"role": "assistant", "content": "I say so"}, {"role": "user", "content": "on"}]
    other = asked(client, rewritten, tools=[TOOL])
    expected += [(None, ids[0]), (None, ids[1]), (other.prompt_token_ids, other.choices[0].token_ids)]
    ended(gateway, "mixed")
    kept = gateway.kept()["mixed"]
    assert len(kept.turns) == len(expected)
    for number, (prompt, drawn) in enumerate(expected):
        assert list(kept.turns[number].token_ids) == drawn
        assert prompt is None or list(kept.prompt_ids(number)) == prompt
    assert [turn.parent for turn in kept.turns] == [None, None, None, 1, 1, None]
    assert [texts[index] for index in (0, 1)] == [turn.answer.text for turn in kept.turns[3:5]]


def test_an_answer_says_where_it_is_from_and_what_it_was_shown(gateway):
    task = {"instruction": ASK[0]["content"], "scope": "lotus"}
    token = opened(gateway, "stamped", task=task)["token"]
    response = gateway.openai("stamped", token).chat.completions.with_raw_response.create(
        model="first@3", messages=ASK, extra_body=IDS
    )
    reply = response.parse()
    shown = response.headers["x-coevo-entries"].split(",")
    assert set(shown) == {MUG.id, MICROWAVE.id}
    assert (response.headers["x-coevo-policy"], response.headers["x-coevo-bank"]) == ("first@3", "first@3")
    assert reply.coevo["entries"] == shown
    assert (reply.model, reply.coevo["policy"], reply.coevo["mode"]) == ("first@3", "first@3", "training")
    prompt = tokenizer("qwen3").decode(reply.prompt_token_ids)
    assert HEAT in prompt
    assert "lotus mug in drawer" in prompt  # the entry as it is in this revision
    assert SAFE not in prompt
    # What the conversation holds is not shown again, and the prefix stays.
    later = asked(gateway.openai("stamped"), [*ASK, reply.choices[0].message.model_dump(exclude_none=True), *ASK])
    assert later.coevo["entries"] == shown
    assert tokenizer("qwen3").decode(later.prompt_token_ids).count(HEAT) == 1


def test_lessons_stand_where_the_client_wants_them_and_scopes_do_not_mix(gateway):
    opened(gateway, "placed", task={"instruction": "heat mug", "scope": "lotus"})
    reply = asked(gateway.openai("placed"), [{"role": "user", "content": "before {{lessons}} behind"}])
    text = tokenizer("qwen3").decode(reply.prompt_token_ids)
    assert text.index("before") < text.index(HEAT) < text.index("behind")
    opened(gateway, "elsewhere", task={"instruction": "heat mug", "scope": "iris"})
    reply = asked(gateway.openai("elsewhere"), [{"role": "user", "content": "before {{lessons}} behind"}])
    assert (reply.coevo["entries"], reply.coevo["no_lesson"]) == ([], "the bank has no lesson of scope 'iris'.")
    assert "{{" not in tokenizer("qwen3").decode(reply.prompt_token_ids)


def test_limits_of_an_answer_cut_it_where_a_shorter_draw_would_have_ended(gateway):
    def drawn(name, **more):
        return asked(gateway.openai(name), seed=7, **more).choices[0]

    opened(gateway, "whole")
    whole = drawn("whole")
    assert len(whole.token_ids) <= TOKENS
    # The draws of a session depend on its name: the same session asks, with less room.
    kept = gateway.openai("whole").chat.completions.create(
        model="m", messages=ASK, seed=8, max_tokens=3, extra_body=IDS
    )
    longer = gateway.openai("whole").chat.completions.create(model="m", messages=ASK, seed=8, extra_body=IDS)
    assert kept.choices[0].finish_reason == "length"
    assert len(kept.choices[0].token_ids) == 3
    assert len(longer.choices[0].token_ids) > 3
    text = whole.message.content
    middle = text[len(text) // 2]
    stopped = asked(gateway.openai("whole"), seed=9, stop=[middle])
    assert middle not in stopped.choices[0].message.content


def test_log_probs_are_those_of_the_draw(gateway):
    reply = asked(gateway.openai("logs"), logprobs=True)
    ended(gateway, "logs")
    shown = reply.choices[0].logprobs.content
    assert [each.logprob for each in shown] == list(gateway.kept()["logs"].turns[0].logprobs)


def test_evaluation_is_kept_apart(gateway):
    opened(gateway, "exam", mode="evaluation")
    assert asked(gateway.openai("exam")).coevo["mode"] == "evaluation"
    ended(gateway, "exam")
    assert "exam" in gateway.kept("evaluation")
    assert "exam" not in gateway.kept("training")


def test_a_token_opens_its_session_alone(gateway):
    token = opened(gateway, "mine")["token"]
    opened(gateway, "yours")
    assert asked(gateway.openai("mine", token)).choices
    for path, body in (
        ("/s/yours/v1/chat/completions", {"model": "m", "messages": ASK}),
        ("/s/yours/v1/messages", {"model": "m", "max_tokens": 5, "messages": ASK}),
        ("/s/yours/outcome", {"reward": 1, "success": True}),
        ("/s/mine", {}),
        ("/s/new", {}),
    ):
        assert post(gateway, path, body, token)[0] == 401
        assert post(gateway, path, body, "")[0] == 401
    assert post(gateway, "/status", b"", token, method="GET")[0] == 401
    with pytest.raises(openai.AuthenticationError, match="token is wrong"):
        asked(gateway.openai("yours", token))


def test_sessions_of_equal_histories_share_nothing(gateway):
    first, second = asked(gateway.openai("one")), asked(gateway.openai("two"))
    assert first.choices[0].token_ids != second.choices[0].token_ids
    follow = [*ASK, first.choices[0].message.model_dump(exclude_none=True), {"role": "user", "content": "on"}]
    assert place(asked(gateway.openai("two"), follow).coevo) == (1, 1)
    assert place(asked(gateway.openai("one"), follow).coevo) == (1, 0)


def test_an_outcome_ends_a_session_once(gateway):
    assert ended(gateway, "unused")[0] == 400
    asked(gateway.openai("once"))
    assert ended(gateway, "once", 0.5)[0] == 200
    assert ended(gateway, "once", 0.5)[0] == 200
    status, document = ended(gateway, "once", 1.0)
    assert (status, "too late" in document["error"]["message"]) == (410, True)
    with pytest.raises(openai.APIStatusError, match="is over"):
        asked(gateway.openai("once"))
    assert gateway.kept()["once"].outcome.reward == 0.5


def test_a_policy_that_is_not_served_is_refused(gateway):
    with pytest.raises(openai.NotFoundError, match=r"serves first@3, and no other revision"):
        gateway.openai("stale").chat.completions.create(model="first@2", messages=ASK)
    assert [each.id for each in gateway.openai("stale").models.list()] == ["first@3"]


def test_a_prompt_that_is_too_long_says_so(gateway):
    with pytest.raises(openai.BadRequestError) as refused:
        asked(gateway.openai("long"), [{"role": "user", "content": "mug " * 5000}])
    assert refused.value.code == "context_length_exceeded"


GOOD = {"model": "m", "messages": ASK}
WRONG = {
    "no JSON": b"{",
    "not UTF-8": b"\xff\xfe",
    "a list": b"[]",
    "deep": b'{"messages": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "no messages": {**GOOD, "messages": []},
    "a number": {**GOOD, "messages": [{"role": "user", "content": 3}]},
    "an unknown role": {**GOOD, "messages": [{"role": "judge", "content": "x"}]},
    "an image": {**GOOD, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
    "a surrogate": json.dumps(GOOD).replace("heat", "\\ud800").encode(),
    "an answer last": {**GOOD, "messages": [*ASK, {"role": "assistant", "content": "x"}]},
    "many answers": {**GOOD, "n": 17},
    "no answers": {**GOOD, "n": 0},
    "a forced call": {**GOOD, "tools": [TOOL], "tool_choice": "required"},
    "a penalty": {**GOOD, "frequency_penalty": 1.0},
    "a bias": {**GOOD, "logit_bias": {"5": 100}},
    "JSON wanted": {**GOOD, "response_format": {"type": "json_object"}},
    "an empty stop": {**GOOD, "stop": ""},
    "a long id of a call": {
        **GOOD,
        "messages": [
            *ASK,
            {"role": "assistant", "tool_calls": [{"id": "x" * 201, "function": {"name": "go", "arguments": "{}"}}]},
            *ASK,
        ],
    },
    "a huge seed": {**GOOD, "seed": 2**70},
    "no number": {**GOOD, "temperature": float("nan")},
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_what_is_no_request_is_refused_in_one_line(gateway, body):
    status, document, _ = post(gateway, "/s/wrong/v1/chat/completions", body)
    message = document["error"]["message"]
    assert status == 422
    assert message
    assert "\n" not in message
    assert len(message) <= 300


def test_bodies_names_and_methods_have_bounds(gateway):
    assert post(gateway, "/s/wide/v1/chat/completions", b" " * (5 * 2**20))[0] == 413
    for name in ("..", "a" * 101, "%00", "a%20b"):
        assert post(gateway, f"/s/{name}/v1/chat/completions", GOOD)[0] in (400, 404)
    assert post(gateway, "/s/wide/v1/chat/completions", b"", method="GET")[0] == 405
    assert post(gateway, "/s/wide/v1/chat/completions", GOOD, headers={"Host": "evil.example"})[0] == 403
    assert post(gateway, "/s/wide/v1/chat/completions", GOOD, headers={"Origin": "http://evil.example"})[0] == 403
    assert post(gateway, "/s/wide/outcome", {"reward": float("nan"), "success": True})[0] == 422


CLAUDE = {"model": "claude", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief."}], "messages": ASK}


def test_anthropic_messages_keep_their_tokens(gateway):
    opened(gateway, "claude")
    key = {"x-api-key": gateway.token, "Authorization": ""}
    status, reply, headers = post(gateway, "/s/claude/v1/messages", CLAUDE, headers=key)
    assert (status, reply["type"], reply["role"], headers["x-coevo-policy"]) == (200, "message", "assistant", "first@3")
    (block,) = reply["content"]
    result = {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "seen"}]}
    follow = [
        *ASK,
        {"role": "assistant", "content": [block]},
        {"role": "user", "content": [result, {"type": "text", "text": "on"}]},
    ]
    later = post(gateway, "/s/claude/v1/messages", {**CLAUDE, "messages": follow}, headers=key)[1]
    assert place(later["coevo"]) == (1, 0)
    ended(gateway, "claude")
    kept = gateway.kept()["claude"]
    assert kept.turns[1].parent == 0
    assert [message.role for message in kept.turns[0].messages] == ["system", "user"]
    assert [message.role for message in kept.turns[1].messages] == ["tool", "user"]
    assert reply["usage"] == {"input_tokens": len(kept.prompt_ids(0)), "output_tokens": len(kept.turns[0].token_ids)}
    status, refused, _ = post(gateway, "/s/claude/v1/messages", {**CLAUDE, "max_tokens": 0}, headers=key)
    assert (status, refused["type"], refused["error"]["type"]) == (422, "error", "invalid_request_error")


def test_two_authorization_headers_are_no_token(gateway):
    wanted = []
    for number in (1, 2):
        connection = http.client.HTTPConnection(urlsplit(gateway.url).netloc, timeout=60)
        connection.putrequest("GET", "/status")
        for _ in range(number):
            connection.putheader("Authorization", f"Bearer {gateway.token}")
        connection.endheaders()
        wanted.append(connection.getresponse().status)
        connection.close()
    assert wanted == [200, 401]


@pytest.mark.parametrize("length", [200, 201])
def test_ids_of_repeated_calls_are_bounded_and_not_kept(gateway, length):
    use = {"type": "tool_use", "id": "x" * length, "name": "go", "input": {}}
    body = {**CLAUDE, "messages": [*ASK, {"role": "assistant", "content": [use]}, *ASK]}
    path, key = f"/s/ids-{length}/v1/messages", {"x-api-key": gateway.token}
    assert post(gateway, path, body, headers=key)[0] == (200 if length == 200 else 422)
    if length == 200:
        ended(gateway, "ids-200")
        assert [call.id for each in gateway.kept()["ids-200"].turns[0].messages for call in each.calls] == [""]


def test_half_a_character_in_a_repeated_call_does_not_end_its_session(gateway):
    call = {"id": "x", "function": {"name": "go", "arguments": json.dumps({"place": "\ud83d"})}}
    asked(gateway.openai("half"), [*ASK, {"role": "assistant", "tool_calls": [{**call, "type": "function"}]}, *ASK])
    assert ended(gateway, "half")[0] == 200
    (kept,) = gateway.kept()["half"].turns[0].messages[1].calls
    assert json.loads(kept.arguments) == {"place": "?"}


def test_an_anthropic_stream_has_the_events_of_its_dialect(gateway):
    parts = urlsplit(gateway.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    body = json.dumps({**CLAUDE, "stream": True})
    connection.request("POST", "/s/flow/v1/messages", body, {"x-api-key": gateway.token})
    text = connection.getresponse().read().decode()
    connection.close()
    events = [json.loads(line.removeprefix("data: ")) for line in text.split("\n") if line.startswith("data: ")]
    kinds = list(dict.fromkeys(each["type"] for each in events))
    assert kinds == ["message_start", "content_block_start", "content_block_delta", "content_block_stop",
                     "message_delta", "message_stop"]  # fmt: skip
    said = "".join(each["delta"]["text"] for each in events if each["type"] == "content_block_delta")
    ended(gateway, "flow")
    assert said == gateway.kept()["flow"].turns[0].answer.text


def test_sessions_are_bounded_and_counted(tmp_path, gateway):
    status, document, _ = post(gateway, "/status", b"", method="GET")
    assert status == 200
    assert document["sessions"]["outcome"] == len(gateway.kept()) + len(gateway.kept("evaluation"))
