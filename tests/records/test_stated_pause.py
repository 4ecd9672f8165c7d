"""Pauses that an endpoint states in headers, in fields of an error, or in its words."""

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.records.stated_pause import MAX_PAUSE_S, pause_in, pause_of

UNITS = {"ms": 0.001, " milliseconds": 0.001, "s": 1, " seconds": 1, " sec": 1, "m": 60, " minutes": 60, " min": 60,
         "h": 3600, " hours": 3600}  # fmt: skip
ASKED = ["Please try again in {}.", "Please retry in {} or buy more", "please retry after {}.", "wait for {} please",
         "Rate limit reached: try again in about {}"]  # fmt: skip
SHAPES = [
    lambda words: words,
    lambda words: {"message": words, "code": 429},
    lambda words: {"error": {"message": words}},
    lambda words: [{"error": {"message": words}}],
    lambda words: {"detail": words},
    lambda words: {"errors": [{"message": words}]},
]


@given(
    st.integers(1, 999), st.integers(0, 9), st.sampled_from([*UNITS]), st.sampled_from(ASKED), st.sampled_from(SHAPES)
)
def test_a_pause_in_words(whole, tenths, unit, words, shape):
    seconds = min((whole + tenths / 10) * UNITS[unit], MAX_PAUSE_S)
    assert pause_in(shape(words.format(f"{whole}.{tenths}{unit}"))) == pytest.approx(seconds)
    assert pause_of({"retry-after": f"{whole}.{tenths}{unit}"}) == pytest.approx(seconds)


@given(st.integers(0, 23), st.integers(0, 59), st.integers(1, 59), st.sampled_from(["", " "]))
def test_a_pause_in_several_units(hours, minutes, seconds, blank):
    said = f"{hours}h{blank}{minutes}m{blank}{seconds}s"
    assert pause_in(f"Please try again in {said}.") == pause_of({"retry-after": said})
    assert pause_of({"retry-after": said}) == 3600 * hours + 60 * minutes + seconds


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"details": [{"@type": "Help"}, {"@type": "google.rpc.RetryInfo", "retryDelay": "34.07s"}]}, 34.07),
        ([{"error": {"details": [{"retryDelay": "17s"}]}}], 17),
        ({"message": "limited", "retry_after": 1.5}, 1.5),
        ({"message": "limited", "retry_after": "9" * 400}, 0),
        ({"message": "limited", "retry_after": True}, 0),
        ("Please try again later.", 0),
        ("try again in a few minutes", 0),
        ("try again in 3 apples", 0),
        ("Limit 30, Used 30, Requested 1.", 0),
        ("retry 3 times", 0),
        (None, 0),
        (7, 0),
    ],
)
def test_a_pause_in_an_error_and_what_is_none(error, seconds):
    assert pause_in(error) == seconds


def test_two_lines_with_the_time_of_the_endpoint_count_as_one():
    now = "Sat, 28 Nov 2026 12:00:00 GMT"
    assert pause_of({"retry-after": "Sat, 28 Nov 2026 12:00:09 GMT", "date": f"{now}, {now}"}) == 9


def test_a_date_beside_an_unreadable_time_of_the_endpoint_counts_from_this_machine():
    then = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    for now in ("x", "99", ""):
        assert 3500 < pause_of({"retry-after": then, "date": now}) <= 3600


def test_an_error_of_great_depth_or_length_takes_no_time():
    deep = json.loads('{"error": ' * 500 + "1" + "}" * 500)
    since = time.process_time()
    for error in (
        deep,
        [deep] * 1000,
        "try again in " * 10_000,
        "again in 1" + " " * 100_000,
        {"retry_after": "1" * 10**6},
    ):
        assert pause_in(error) == 0
    assert pause_of({"retry-after": "1h" + " " * 100_000 + "x"}) == 0
    assert time.process_time() - since < 2
