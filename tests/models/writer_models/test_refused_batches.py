"""A batch of which some requests fail, in the many ways of providers and networks: what is asked again, and when."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import pytest
from support.completions import HANGS, HANGS_UP, Answer, completions, refused, said
from support.writer_models import question

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel


def asking(url, **settings):
    return EndpointWriterModel(EndpointWriterModelConfig(type="endpoint", url=url, model="m", **settings), pytest.fail)


def asked(url, count, **settings):
    """Replies in the order of the questions."""
    found = dict(asking(url, **settings).replies([question(str(number)) for number in range(count)]))
    return [found[place] for place in range(count)]


def limit(words="slow down", status=429, headers=None, **fields):
    return lambda: Answer({"error": {"message": words, **fields}}, status, headers or {})


def in_two_seconds():
    return Answer(b"", 429, {"Retry-After": formatdate(time.time() + 2, usegmt=True)})


def of_gemini():
    words = "You exceeded your current quota, please check your plan and billing details."
    details = [{"@type": "QuotaFailure"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": words, "details": details}
    return Answer(json.dumps([{"error": error}]).encode(), 429)


PASSING = {
    "no pause": (limit(), 0),
    "seconds": (limit(headers={"Retry-After": "1"}), 1),
    "a fraction, with blanks": (limit(headers={"Retry-After": "  0.3 "}), 0.3),
    "a date": (in_two_seconds, 1),
    "a date in the past": (limit(headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), 0),
    "a negative number": (limit(headers={"Retry-After": "-5"}), 0),
    "no number": (limit(headers={"Retry-After": "soon"}), 0),
    "milliseconds before seconds": (limit(headers={"retry-after-ms": "300", "Retry-After": "30"}), 0.3),
    "a reset of the whole limit, which is no pause": (
        limit(headers={"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}),
        0,
    ),
    "OpenAI's words": (limit("Rate limit reached for gpt-4o on requests per min (RPM): Limit 3, Used 3, Requested 1. "
                             "Please try again in 300ms. Visit your account page to add credits."), 0.3),
    "Azure's words": (limit("Your requests to m exceeded call rate limit. Please retry after 1 seconds."), 1),
    "Gemini's field": (of_gemini, 0.3),
    "Gemini's words of a minute": (
        limit("You exceeded your current quota, please check your plan and billing details. Quota: 10 per minute"),
        0,
    ),
    "Anthropic's overload": (limit("Overloaded", 529, type="overloaded_error"), 0),
    "an overload without words": (lambda: Answer(b"", 529), 0),
    "llama.cpp loads": (limit("Loading model", 503, type="unavailable_error", code=503), 0),
    "OpenAI's overload": (limit("That model is currently overloaded with other requests.", 503), 0),
    "no place": (limit("no slot available", 503), 0),
    "a limit of requests as 403": (limit("You have exceeded a secondary rate limit", 403), 0),
    "an overload with 200": (limit("Overloaded", 200, type="overloaded_error"), 0),
    "a limit with 200": (limit("Rate limit exceeded", 200, {"Retry-After": "0.3"}, code="429"), 0.3),
    "a busy endpoint with 200": (limit("busy", 200, {"Retry-After": "0.3"}, code=503), 0.3),
}  # fmt: skip
"""Refusals that pass, and the seconds that each asks for."""


@pytest.mark.parametrize(("refusal", "pause"), PASSING.values(), ids=PASSING)
def test_a_limit_that_passes_is_waited_for_without_a_repetition(refusal, pause):
    times = []

    def behave(request):
        times.append(time.monotonic())
        return refusal() if request.number == 0 else said(request.user)

    with completions(behave) as (url, requests):
        replies = asked(url, 3, retries=0, concurrency=1, seconds=60.0)
    assert [reply.text for reply in replies] == ["0", "1", "2"] and len(requests) == 4
    assert times[1] - times[0] >= pause


FINAL = {
    "no quota": limit("You exceeded your current quota, please check your plan and billing details.",
                      code="insufficient_quota"),
    "no quota, behind a gateway": limit("RateLimitError: OpenAIException - You exceeded your current quota, please "
                                        "check your plan and billing details.", type="throttling_error", code="429"),
    "credits are used up": limit("Your team has used all available credits or reached its monthly spending limit."),
    "no funds": limit("Insufficient account balance", code="1113"),
    "OpenRouter's name of a model": limit("foo/bar is not a valid model ID", 400, code=400),
    "DeepSeek's": limit("Model Not Exist", 400, type="invalid_request_error"),
    "LiteLLM's": limit("/chat/completions: Invalid model name passed in model=foo.", 400),
    "Bedrock's": limit("The provided model identifier is invalid.", 400),
    "Together's": limit("Unable to access model foo. Please visit the list of models.", 400),
    "Groq's, no longer there": limit("The model `foo` has been decommissioned and is no longer supported.", 400),
    "not served by a provider": limit("The requested model 'foo' is not supported by any provider", 400),
    "not known": limit("Unknown Model, please check the model code.", 400, code="1211"),
    "no deployment": limit("The API deployment for this resource does not exist.", 404, code="DeploymentNotFound"),
    "a country": limit("User location is not supported for the API use.", 400),
    "payment": limit("Insufficient Balance", 402),
    "not implemented": limit("no", 501),
    "network login": lambda: Answer(b"<html>log in</html>", 511),
    "a redirection": lambda: Answer(b"", 302, {"Location": "http://127.0.0.1:9/login"}),
    "a key with 200": limit("bad key", 200, type="authentication_error"),
}  # fmt: skip
"""Refusals that every question would get."""


@pytest.mark.parametrize("refusal", FINAL.values(), ids=FINAL)
def test_a_refusal_of_all_is_asked_once(refusal):
    with completions(lambda _: refusal()) as (url, requests):
        replies = asked(url, 40, concurrency=1)
    assert len(requests) == 1 and len({reply.fault for reply in replies}) == 1 and replies[0].fault


def test_a_request_that_is_beyond_a_limit_by_itself_does_not_hold_the_others():
    words = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 36000. The tokens must be reduced."
    with completions(lambda it: limit(words)() if it.user == "1" else said(it.user)) as (url, requests):
        replies = asked(url, 12, seconds=60.0)
    assert [reply.text for reply in replies] == ["0", "", *map(str, range(2, 12))] and len(requests) == 12
    assert "Request too large" in replies[1].fault


CUT = b'{"id": "x", "object": "chat.completion", "choices": [{"index": 0, "mess'
FAILING = {
    **{str(status): (limit("no", status), 30.0) for status in (408, 409, 425, 500, 502, 504, 520)},
    "503 without words": (lambda: Answer(b"", 503), 30.0),
    "hung up": (lambda: HANGS_UP, 30.0),
    "no answer": (lambda: HANGS, 1.0),
    "stalled in the body": (lambda: Answer(iter([CUT[:20], CUT[20:]]), pause=20.0), 1.0),
    "cut short": (lambda: Answer(iter([CUT]), headers={"Content_Length": "900"}), 30.0),
    "cut short without a length": (lambda: Answer(iter([CUT])), 30.0),
    "no body": (lambda: Answer(b""), 30.0),
}
"""Failures, each with a time limit of a request."""


@pytest.mark.parametrize(("failure", "timeout"), FAILING.values(), ids=FAILING)
def test_each_third_request_fails_and_all_questions_are_answered(failure, timeout):
    with completions(lambda it: said(it.user) if it.number % 3 else failure()) as (url, requests):
        replies = asked(url, 6, retries=6, timeout=timeout)
    assert [(reply.text, reply.fault) for reply in replies] == [(str(number), "") for number in range(6)]
    assert 8 <= len(requests) <= 20


def test_an_answer_that_was_on_its_way_does_not_bring_a_refusal_of_all_back():
    refusing = threading.Event()

    def behave(request):
        if request.number == 3:
            refusing.set()
            return refused("the key was revoked", 401)
        refusing.wait(20)
        time.sleep(0.3)  # after the refusal
        return said(request.user)

    with completions(behave) as (url, requests):
        replies = asked(url, 20, concurrency=4)
    assert len(requests) == 4
    assert sum(not reply.fault for reply in replies) == 3
    assert all("the key was revoked" in reply.fault for reply in replies if reply.fault)


def test_two_callers_of_an_endpoint_share_its_pause_and_others_do_not():
    times = []

    def behave(request):
        times.append((request.body["model"], time.monotonic()))
        return refused("wait", 429, Retry_After="1") if len(times) == 1 else said(request.user)

    def another(name):
        made = EndpointWriterModelConfig(type="endpoint", url=url, model=name)
        return dict(EndpointWriterModel(made, pytest.fail).replies([question()]))[0].text

    with completions(behave) as (url, _), ThreadPoolExecutor(3) as pool:
        first = pool.submit(another, "m")
        while not times:
            time.sleep(0.01)
        time.sleep(0.2)
        texts = [each.result() for each in (first, pool.submit(another, "m"), pool.submit(another, "n"))]
    assert len({*texts}) == 1 and texts[0]
    (_, since), *later = times
    assert [each - since >= 1 for name, each in sorted(later)] == [True, True, False]
