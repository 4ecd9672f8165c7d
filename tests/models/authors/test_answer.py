"""Bodies that are no chat completion: each is a reply with a fault on one line, whatever it holds."""

import gzip
import json

import pytest
from support.authors import question
from support.completions import Answer, completions, said

from coevo.configs.bank.author import EndpointAuthorConfig
from coevo.models.authors.answer import LARGEST, reply_of
from coevo.models.authors.endpoint import EndpointAuthor

GOOD = said("x").parts()[0]


def changed(**fields):
    return json.dumps({**json.loads(GOOD), **fields}).encode()


NONE = {
    "empty": b"",
    "half": GOOD[:40],
    "text": b"<html>busy</html>",
    "not UTF-8": b'{"choices": "\xff"}',
    "a list": b"[]",
    "null": b"null",
    "no choices": b"{}",
    "no choice": changed(choices=[]),
    "a choice that is text": changed(choices=["x"]),
    "no message": changed(choices=[{}]),
    "a number for text": changed(choices=[{"message": {"content": 7}}]),
    "a list for text": changed(choices=[{"message": {"content": [{"text": "x"}]}}]),
    "text for tokens": changed(usage={"prompt_tokens": "many"}),
    "negative tokens": changed(usage={"prompt_tokens": -1}),
    "endless tokens": changed(usage={"completion_tokens": 10**30}),
    "nested without end": b'{"choices":' + b"[" * 100_000,
    "half of a surrogate pair": GOOD.replace(b'"x", "', b'"\\ud800", "').replace(
        b'"content": "x"', b'"content": "\\ud800"'
    ),
    "compressed": gzip.compress(GOOD),
    "huge": said("x" * LARGEST).parts()[0],
}


@pytest.mark.parametrize("body", NONE.values(), ids=NONE)
def test_a_body_that_is_no_completion_is_a_fault(body):
    reply = reply_of(body)
    assert (reply.text, reply.finished) == ("", False)
    assert reply.fault.startswith("the endpoint's answer is ") and "\n" not in reply.fault and len(reply.fault) < 300


@pytest.mark.parametrize("body", [changed(usage=None), changed(usage={}), changed(more={"a": [1]})])
def test_what_is_missing_or_more_does_no_harm(body):
    assert reply_of(body).text == "x" and not reply_of(body).fault


def test_a_server_that_sends_without_end_or_compressed_fills_no_memory():
    """The body is not read to its end, and what nobody asked to compress is not expanded."""
    bomb = gzip.compress(b" " * 2**24)
    taken = []

    def endless():
        for number in range(1000):
            taken.append(number)
            yield b" " * 2**20

    def behave(request):
        return Answer(endless()) if request.user == "endless" else Answer(bomb, headers={"Content-Encoding": "gzip"})

    with completions(behave) as (url, _):
        config = EndpointAuthorConfig(type="endpoint", url=url, model="m", concurrency=1)
        made = EndpointAuthor(config, pytest.fail)
        found = [reply for _, reply in made.replies([question("endless"), question("bomb")])]
    assert found[0].fault == "the endpoint's answer is longer than 4 MiB"
    assert found[1].fault.startswith("the endpoint's answer is no chat completion")
    assert len(taken) < 100


@pytest.mark.parametrize("other", [None, 7, "x", {}, {"message": None}, {"message": {"content": 7}}])
def test_a_flaw_in_a_choice_that_is_not_read_does_no_harm(other):
    first = json.loads(GOOD)["choices"][0]
    assert reply_of(changed(choices=[first, other])).text == "x"
