"""The key of an endpoint: it reaches the endpoint, and nothing else."""

import json
import logging
import os
from urllib.parse import quote

import pytest
from support.completions import Answer, completions, refused, said
from support.writer_models import SCHEMA, question

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel
from coevo.utilities.errors import CoevoError

KEY, VARIABLE = "sk-of-a-test/0123456789+secret=", "COEVO_TEST_WRITER_MODEL_KEY"


@pytest.fixture(autouse=True)
def variable(monkeypatch):
    monkeypatch.setenv(VARIABLE, KEY)


def writer_model(url, warn=pytest.fail, key=VARIABLE, **settings):
    settings = {"model": "m", "retries": 0, **settings}
    return EndpointWriterModel(EndpointWriterModelConfig(type="endpoint", url=url, key=key, **settings), warn)


def replies(made, *questions):
    return [reply for _, reply in made.replies(questions or [question()])]


@pytest.mark.parametrize("key", [None, VARIABLE])
def test_the_key_of_the_variable_is_sent_and_no_other_secret_of_the_environment(key, monkeypatch):
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET"):
        monkeypatch.setenv(f"OPENAI_{name}", "another-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Own: another-secret\nAuthorization: Bearer another-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    with completions(lambda _: said("x")) as (url, requests):
        assert replies(writer_model(url, key=key))[0].text == "x"
    assert "another-secret" not in str(requests)
    assert requests[0].headers.get("authorization") == (f"Bearer {KEY}" if key else None)


def escaped(told):
    return "".join(f"\\u{ord(character):04X}" for character in told)


def lesson(told):
    """A lesson in JSON, as a model writes it."""
    return said(f'{{"lessons": [{{"lesson": "use {told}"}}]}}')


ECHOES = {
    "an error": lambda told: refused(f"bad header {told}", 401),
    "an error at its end": lambda told: refused("x" * 180 + told, 403),
    "an error with invisible characters": lambda told: refused(told[:20] + "\u200b" + told[20:], 400),
    "an error in another form": lambda told: Answer({"detail": [{"input": told}]}, 422),
    "an error that is no JSON": lambda told: Answer(f"<p>{told}".encode(), 500),
    "a reason": lambda told: Answer({"error": {"message": f"response_format {told}"}}, 400),
    "an answer": lambda told: said(f"lesson: use {told}"),
    "a refusal": lambda told: said(None, refusal=told),
    "no completion": lambda told: Answer({"choices": told}),
    "JSON in JSON": lambda told: lesson(escaped(told)),
    "one character in JSON": lambda told: lesson(told[:9] + escaped(told[9]) + told[10:]),
    "a slash in JSON": lambda told: lesson(told.replace("/", "\\/")),
    "two lines": lambda told: said(f"{told[:16]}\n    {told[16:]}"),
    "two lines in JSON": lambda told: lesson(f"{told[:16]}\\n{told[16:]}"),
    "invisible characters in JSON": lambda told: lesson(f"{told[:16]}\\u200b{told[16:]}"),
    "an error with JSON in it": lambda told: Answer({"oops": [json.dumps({"got": escaped(told)})]}, 400),
    "an address": lambda told: refused(f"https://a/?key={quote(told, safe='')}", 400),
    "HTML": lambda told: refused(told.replace("/", "&#x2F;").replace("=", "&#61;"), 400),
    "a header": lambda told: Answer(b"{}", 302, {"Location": f"/{told}"}),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_a_key_that_comes_back_is_hidden(echo, caplog):
    caplog.set_level(logging.DEBUG, logger="openai")
    caplog.set_level(logging.DEBUG, logger="coevo")
    warned = []
    with completions(lambda it: echo(it.headers["authorization"])) as (url, _):
        made = writer_model(url, warned.append)
        (reply,) = replies(made, question(schema=SCHEMA))
    seen = f"{reply} {warned} {made!r} {caplog.text}"
    assert reply.text or reply.fault
    assert "\n" not in reply.fault and len(reply.fault) <= 400
    assert not any(KEY[start : start + 8] in seen for start in range(len(KEY) - 8))


def test_a_placeholder_is_no_secret(monkeypatch):
    monkeypatch.setenv(VARIABLE, "EMPTY")
    with completions(lambda _: said("the drawer is EMPTY")) as (url, _):
        assert replies(writer_model(url))[0].text == "the drawer is EMPTY"


def test_a_refused_key_names_its_variable():
    with completions(lambda _: refused("no such key", 401)) as (url, _):
        assert (
            replies(writer_model(url))[0].fault
            == f"the endpoint refuses (401: no such key); check the key in {VARIABLE}"
        )
        assert "name the variable of a key in bank.writer.model.key" in replies(writer_model(url, key=None))[0].fault


def test_a_redirection_is_not_followed():
    with (
        completions(lambda _: said("stolen")) as (other, stolen),
        completions(lambda _: Answer(b"", 307, {"Location": f"{other}/chat/completions"})) as (url, requests),
    ):
        (reply,) = replies(writer_model(url))
    assert reply.fault == "the endpoint redirects (307), which is not followed: correct bank.writer.model.url"
    assert (len(requests), stolen) == (1, [])


@pytest.mark.parametrize(
    ("value", "said"), [(None, "no such variable"), ("", "no such variable"), ("a\nb", "not an API")]
)
def test_a_key_that_is_missing_or_none_is_one_line(value, said, monkeypatch):
    if value is None:
        monkeypatch.delenv(VARIABLE)
    else:
        monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(CoevoError, match=said) as raised:
        writer_model("http://127.0.0.1:9/v1")
    assert VARIABLE in str(raised.value) and "\n" not in str(raised.value)
    assert not os.environ.get(VARIABLE) or value not in str(raised.value)


@pytest.mark.parametrize("name", ["sk_of_a_test_0123", "SKa0123", "hf_0123"])
def test_a_key_in_the_place_of_its_variable_is_not_repeated(name):
    with pytest.raises(CoevoError, match="name the environment variable that holds the API key") as raised:
        writer_model("http://127.0.0.1:9/v1", key=name)
    assert name not in str(raised.value)
