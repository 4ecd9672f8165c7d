"""A batch at an endpoint with a rate limit: the time decides how many questions are answered, not the retries."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from math import ceil
from threading import Lock

import pytest
from support.completions import HANGS, Answer, completions, refused, said
from support.soak import mostly_soak
from support.writer_models import question

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel
from coevo.models.writer_models.request_pace import JITTER, Pace, backoff


class Limited:
    """An endpoint that answers once per interval; ``wait`` writes what it asks for, from the seconds until then."""

    def __init__(self, interval, wait=None, together=1):
        self.interval, self.wait, self.together = interval, wait, together
        self.times, self.refusals, self.lock = [], [], Lock()

    def __call__(self, request):
        with self.lock:
            now = time.monotonic()
            recent = [each for each in self.times if now - each < self.interval]
            if len(recent) < self.together:
                self.times.append(now)
                return said(request.user)
            self.refusals.append(now)
            headers = self.wait(recent[0] + self.interval - now) if self.wait else {}
            return refused("slow down", 429, **headers)


def in_seconds(left):
    return {"Retry_After": str(max(ceil(left), 1))}


def at_a_date(left):
    then = datetime.now(UTC) + timedelta(seconds=ceil(left) + 1)
    return {"Retry_After": format_datetime(then, usegmt=True)}


def in_milliseconds(left):
    return {"retry-after-ms": str(ceil(left * 1000))}


def asked(url, count, **settings):
    made = EndpointWriterModel(EndpointWriterModelConfig(type="endpoint", url=url, model="m", **settings), pytest.fail)
    found = dict(made.replies([question(str(number)) for number in range(count)]))
    return [found[place] for place in range(count)], made


def test_every_question_is_answered_within_the_time_without_a_retry():
    limited = Limited(0.15)
    with completions(limited) as (url, requests):
        replies, made = asked(url, 12, seconds=30.0, retries=0)
    assert [reply.text for reply in replies] == [str(number) for number in range(12)]
    assert (made.traffic.requests, made.traffic.refusals) == (len(requests), len(limited.refusals))
    assert made.traffic.repeats == made.traffic.timeouts == 0
    assert len(requests) < 12 + 11 + 3 * 12  # the first together, then about as many refusals as answers


def test_a_pause_that_is_asked_for_holds_for_all_and_one_beyond_the_time_ends_the_batch_at_once():
    gate = Limited(60.0, in_seconds)
    with completions(gate) as (url, _):
        since = time.monotonic()
        replies, _ = asked(url, 40, seconds=50.0)
        assert time.monotonic() - since < 25
    late = "the endpoint did not answer within bank.writer.model.seconds=50"
    assert sorted(reply.fault for reply in replies) == ["", *[late] * 39]
    assert len(gate.refusals) <= 15  # those that were sent with the first


CASES = {
    "one a second": (Limited(1.0), 40, 60.0, 40),
    "one a second, in seconds": (Limited(1.0, in_seconds), 40, 60.0, 40),
    "one a second, in milliseconds": (Limited(1.0, in_milliseconds), 40, 60.0, 40),
    "at a date": (Limited(3.0, at_a_date, together=10), 40, 60.0, 40),
    "five in two seconds": (Limited(2.0, together=5), 40, 60.0, 40),
    "five in two seconds, in seconds": (Limited(2.0, in_seconds, together=5), 40, 40.0, 40),
    "ten a second": (Limited(0.1), 40, 20.0, 40),
    "one in five seconds": (Limited(5.0, in_seconds), 40, 23.0, 4),
    "90 seconds": (Limited(90.0, lambda left: {"Retry_After": "90"}), 40, 60.0, 1),
}


@pytest.mark.full
@pytest.mark.parametrize("case", mostly_soak(CASES, "five in two seconds, in seconds", "at a date", "90 seconds"))
def test_all_that_fit_are_answered(case):
    limited, count, seconds, least = case
    with completions(limited) as (url, _):
        replies, _ = asked(url, count, seconds=seconds)
    assert sum(not reply.fault for reply in replies) >= least


STOPS = {
    **{str(status): refused("no", status) for status in (401, 402, 403, 404)},
    "no model": refused("The model 'm' does not exist"),
    "no quota": Answer({"error": {"message": "no", "code": "insufficient_quota"}}, 429, {"Retry-After": "1"}),
    "elsewhere": Answer(b"", 308, {"Location": "/v2"}),
    "401 in a body": Answer({"error": {"message": "no", "code": 401}}),
    "no model in a choice": Answer({"choices": [{"error": {"message": "no", "code": "model_not_found"}}]}),
}


@pytest.mark.parametrize("refusal", STOPS.values(), ids=STOPS)
def test_a_refusal_that_all_would_get_stops_the_batch_and_those_after_it(refusal):
    with completions(lambda _: refusal) as (url, requests):
        replies, made = asked(url, 40, concurrency=1)
        assert len(requests) == 1
        assert len({reply.fault for reply in replies}) == 1 and replies[0].fault
        assert dict(made.replies([question()]))[0].fault == replies[0].fault
        assert len(requests) == 1
        asked(url, 40, concurrency=4)
        assert len(requests) <= 5


def test_a_refusal_of_one_question_does_not_stop_the_others():
    long = refused("this model's maximum context length is 9 tokens")
    with completions(lambda it: long if it.user == "0" else said(it.user)) as (url, requests):
        replies, _ = asked(url, 5, concurrency=1)
    assert [bool(reply.fault) for reply in replies] == [True, False, False, False, False]
    assert len(requests) == 5


AGAIN = {
    "an error": Answer({"error": {"message": "cold", "code": 502}, "choices": []}),
    "an error in the choice": Answer({"choices": [{"error": "cold", "finish_reason": "error"}]}),
    "interrupted": said("half", "error", used=(0, 0)),
    "a rate limit": Answer({"error": {"message": "slow", "code": 429}}),
    "503": Answer(b"busy", 503),
    "503 with a pause": Answer(b"busy", 503, {"Retry-After": "0.1"}),
    "408": Answer(b"late", 408),
    "a time-out": HANGS,
}


@pytest.mark.parametrize("first", AGAIN.values(), ids=AGAIN)
def test_what_may_help_is_asked_again_and_costs_nothing(first):
    with completions(lambda it: said("x") if it.number else first) as (url, requests):
        ((reply,), made) = asked(url, 1, timeout=3.0 if first is HANGS else 60.0)
    assert (reply.text, reply.fault, reply.prompt_tokens, reply.answer_tokens) == ("x", "", 7, 3)
    assert len(requests) == made.traffic.requests == 2
    assert made.traffic.repeats + made.traffic.refusals == 1
    assert made.traffic.timeouts == (first is HANGS)


def test_an_empty_answer_is_asked_again_and_both_are_paid():
    with completions(lambda it: said("x" if it.number == 2 else None)) as (url, requests):
        ((reply,), _) = asked(url, 1)
    assert (reply.text, reply.prompt_tokens, reply.answer_tokens, len(requests)) == ("x", 21, 9, 3)


def test_pauses_differ_at_random_and_grow_up_to_a_limit():
    drawn = [[backoff(repeats) for _ in range(20)] for repeats in range(8)]
    for repeats, pauses in enumerate(drawn):
        least = min(0.5 * 2**repeats, 8.0)
        assert all(least <= pause <= least * (1 + JITTER) for pause in pauses) and len({*pauses}) > 10


def test_of_requests_sent_together_one_refusal_counts():
    pace = Pace()
    sent = time.monotonic()
    for _ in range(16):
        pace.refused(sent, 0.0)
    first = pace._spacing
    pace.refused(time.monotonic(), 0.0)
    assert pace._spacing > first
    for _ in range(100):
        pace.answered(time.monotonic())
    assert pace._spacing == 0.0
