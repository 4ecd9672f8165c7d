"""An answer reaches its client while it is drawn, in both dialects, and a client that leaves ends the drawing."""

import http.client
import json
from threading import Event
from urllib.parse import urlsplit

import pytest
from support.gateway import TOKENS, chat_run, listening, served

from coevo.tasks.gateway.answer_stream import AnswerStream, StreamedAnswer

ASK = [{"role": "user", "content": "house lotus . task heat mug to counter"}]
IDS = {"return_token_ids": True}
BODIES = {
    "/v1/chat/completions": {"model": "m", "messages": ASK, "stream": True, "stream_options": {"include_usage": True}},
    "/v1/messages": {"model": "m", "messages": ASK, "stream": True, "max_tokens": 999},
}
LIMIT_S = 60
"""Seconds that each side waits for the other, so that a failure ends."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return chat_run(tmp_path_factory.mktemp("pieces"))


class Paced:
    """Engines that wait for their client behind the first text of an answer.

    Attributes:
        go: set it to let them draw further.
        heard: number of drawn tokens.
        wanted: whether the last token was not the last that its client wants.
    """

    def __init__(self, monkeypatch):
        self.go, self.heard, self.wanted = Event(), 0, True
        hear = StreamedAnswer.__call__

        def slowly(answer, number, token):
            if answer.sent:
                assert self.go.wait(LIMIT_S), "no client has got the first text"
            self.heard += 1
            self.wanted = hear(answer, number, token)
            return self.wanted

        monkeypatch.setattr(StreamedAnswer, "__call__", slowly)


def events(response):
    """Documents of a stream as they arrive."""
    for line in response:
        if line.startswith(b"data: {"):
            yield json.loads(line.removeprefix(b"data: "))


def text_of(document):
    """Text that an event adds, in either dialect."""
    if "choices" in document:
        return "".join(choice["delta"].get("content") or "" for choice in document["choices"])
    return document.get("delta", {}).get("text", "")


def usage_of(documents):
    """Drawn tokens as the last usage says."""
    last = [each["usage"] for each in documents if each.get("usage")][-1]
    return last.get("completion_tokens", last.get("output_tokens"))


def post(url, path, body, token="none"):
    """A connection, and its answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
    given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), given)
    return connection, connection.getresponse()


def end(gateway, name):
    """End a session; its answers that are kept."""
    _, response = post(gateway.url, f"/s/{name}/outcome", {"reward": 1.0, "success": True}, gateway.token)
    assert response.status == 200
    return gateway.kept()[name].turns


@pytest.mark.parametrize("path", BODIES)
def test_its_first_text_arrives_while_the_rest_is_drawn_and_all_of_it_is_kept(workspace, monkeypatch, path):
    paced, name = Paced(monkeypatch), f"talk-{path.rpartition('/')[2]}"
    with listening(workspace) as gateway:
        _, response = post(gateway.url, f"/s/{name}{path}", BODIES[path], gateway.token)
        documents, text = [], ""
        for document in events(response):
            documents.append(document)
            text += text_of(document)
            if text:
                paced.go.set()
        (turn,) = end(gateway, name)
    assert text == turn.answer.text
    assert usage_of(documents) == len(turn.token_ids) == len(turn.logprobs) == paced.heard


def test_a_served_agent_sends_in_pieces_too(workspace, monkeypatch):
    paced, path = Paced(monkeypatch), "/v1/chat/completions"
    with served(workspace) as url:
        _, response = post(url, path, BODIES[path])
        for document in events(response):
            if text_of(document):
                paced.go.set()
    assert paced.go.is_set() and 0 < paced.heard <= TOKENS


@pytest.mark.parametrize("path", BODIES)
def test_a_client_that_leaves_frees_its_place_and_its_session_keeps_no_answer(workspace, monkeypatch, path):
    paced, closed, close = Paced(monkeypatch), Event(), AnswerStream.close
    name = f"left-{path.rpartition('/')[2]}"
    monkeypatch.setattr(AnswerStream, "close", lambda stream: (close(stream), closed.set()))
    with listening(workspace) as gateway:
        connection, response = post(gateway.url, f"/s/{name}{path}", BODIES[path], gateway.token)
        assert next(text for document in events(response) if (text := text_of(document)))
        response.close()
        connection.close()
        assert closed.wait(LIMIT_S)
        paced.go.set()
        # The engine takes the next prompt only when it has done with the one before.
        reply = gateway.openai(name).chat.completions.create(model="m", messages=ASK, extra_body=IDS)
        assert not paced.wanted and paced.heard < TOKENS
        (turn,) = end(gateway, name)
    assert list(turn.token_ids) == reply.choices[0].token_ids
