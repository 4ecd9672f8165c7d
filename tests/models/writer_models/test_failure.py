"""Failures: what an error means for the others, whatever shape it has, and how long an endpoint asks to wait."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.models.writer_models.failure import After, after
from coevo.records.stated_error import status_in, words_of
from coevo.records.stated_pause import MAX_PAUSE_S, pause_of

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": "Saturday, 28-Nov-26 12:00:05 GMT"}, 5.0),  # as RFC 850 wrote dates
        ({"retry-after": format_datetime(NOW - timedelta(seconds=9), usegmt=True)}, 0.0),
        ({"retry-after": "90s"}, 90.0),
        ({"retry-after": "1m30.5s"}, 90.5),
        ({"retry-after": "2h"}, 7200.0),
        ({"retry-after": "20 seconds"}, 20.0),
        ({"retry-after": "3, 3"}, 3.0),  # two lines
        ({"retry-after": " +3 "}, 3.0),
        ({"retry-after-ms": "x", "retry-after": "3"}, 3.0),
        ({"retry-after": "m"}, 0.0),
        ({"retry-after": "1d"}, 0.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "inf"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "9" * 400}, 0.0),
        ({"retry-after": "99999999"}, MAX_PAUSE_S),
        ({}, 0.0),
    ],
)
def test_the_pause_of_an_endpoint_in_seconds_or_until_a_date_by_its_own_clock(headers, seconds):
    assert pause_of({"date": format_datetime(NOW, usegmt=True), **headers}) == seconds


def test_a_date_of_an_endpoint_without_a_clock_counts_from_the_time_of_this_machine():
    then = format_datetime(datetime.now(UTC) + timedelta(hours=10), usegmt=True)
    assert 35_000 < pause_of({"retry-after": then}) <= 36_000


@given(st.integers(1, 10**6), st.floats(-(10**8), 10**8))
def test_a_date_counts_from_the_time_of_the_endpoint_not_of_this_machine(seconds, shift):
    now = NOW + timedelta(seconds=round(shift))
    said = {"date": format_datetime(now, usegmt=True), "retry-after": format_datetime(now + timedelta(seconds=seconds))}
    assert pause_of(said) == min(seconds, MAX_PAUSE_S)


@pytest.mark.parametrize(
    ("status", "error", "pause", "then"),
    [
        (429, "slow down", 0, After.WAIT),
        (429, {"code": "insufficient_quota"}, 9, After.STOP),
        (429, {"type": "billing_not_active"}, 0, After.STOP),
        (503, "overloaded", 2, After.WAIT),
        (503, "", 0, After.AGAIN),
        (503, "overloaded", 0, After.WAIT),
        (529, {}, 1, After.WAIT),
        (500, {}, 0, After.AGAIN),
        (504, "", 0, After.AGAIN),
        (408, "", 0, After.AGAIN),
        *[(status, "", 0, After.STOP) for status in (301, 307, 401, 402, 403, 404, 405, 410)],
        *[(status, "", 0, After.STOP) for status in (406, 407, 411, 415, 426, 451, 501, 505, 511)],
        (
            400,
            {"error": {"message": "API key not valid. Please pass one", "status": "INVALID_ARGUMENT"}},
            0,
            After.STOP,
        ),
        (400, {"message": "Incorrect API key provided"}, 0, After.STOP),
        (400, {"message": "Unrecognized request argument supplied: foo"}, 0, After.STOP),
        (400, {"message": "no", "code": "unsupported_parameter"}, 0, After.STOP),
        (400, {"message": "Unsupported value: 'temperature' does not support 0.7"}, 0, After.STOP),
        (422, {"detail": [{"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}]}, 0, After.STOP),
        (400, {"message": "Your credit balance is too low"}, 0, After.STOP),
        (429, {"code": "Arrearage"}, 0, After.STOP),
        (429, {"error": {"type": "exceeded_current_quota_error"}}, 0, After.STOP),
        (520, {}, 0, After.AGAIN),
        (422, {"detail": [{"type": "string_too_long", "msg": "too long"}]}, 0, After.NEXT),
        (400, {"message": "unsupported content"}, 0, After.NEXT),
        (400, {"message": "The model `m` does not exist"}, 0, After.STOP),
        (400, {"code": "model_not_found"}, 0, After.STOP),
        (400, "invalid model ID", 0, After.STOP),
        (400, {"message": "model 'm' not found, try pulling it first"}, 0, After.STOP),
        (400, {"message": "this model's maximum context length is 4096 tokens"}, 0, After.NEXT),
        (400, "bad request", 0, After.NEXT),
        (413, "", 0, After.NEXT),
        (422, {}, 0, After.NEXT),
    ],
)
def test_the_consequence_of_an_error(status, error, pause, then):
    assert after(status, error, pause) is then


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        ("down", 500, "down"),
        ({"message": "slow", "code": 429}, 429, "slow"),
        ({"message": "slow", "code": "429"}, 429, "slow"),
        ({"message": "slow", "code": "rate_limit_exceeded"}, 429, "slow"),
        ({"message": "no", "type": "authentication_error"}, 401, "no"),
        ({"message": "no", "status": "RESOURCE_EXHAUSTED"}, 429, "no"),
        ({"detail": "gone", "code": 9}, 500, "gone"),
        ({"message": "failed", "code": 502, "metadata": {"raw": "cold"}}, 502, "failed: cold"),
        ({"code": True}, 500, "{'code': True}"),
        ([1], 500, "[1]"),
    ],
)
def test_the_status_and_the_words_of_an_error_in_a_body(error, status, words):
    assert (status_in(error), words_of(error)) == (status, words)
