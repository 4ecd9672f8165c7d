"""Limits of endpoints as providers have them, in virtual time: how long a batch takes against the least possible."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.virtual_endpoint import AtOnce, ByTheClock, ClosedFor, Filling, Within, batch

LIMITS = {
    "one a second": (lambda: Within(1, 1.0), {}),
    "one a second, told": (lambda: Within(1, 1.0, hint=True), {}),
    "one a second, slow answers": (lambda: Within(1, 1.0), {"answers": 4.0}),
    "one a second, slow answers and refusals, told": (lambda: Within(1, 1.0, hint=True), {"refusals": 0.3}),
    "one a second, refusals count": (lambda: Within(1, 1.0, counts=True), {}),
    "one a second, refusals count, told": (lambda: Within(1, 1.0, hint=True, counts=True), {}),
    "one in five seconds": (lambda: Within(1, 5.0), {"questions": 12}),
    "ten a second": (lambda: Within(1, 0.1), {}),
    "five in two seconds": (lambda: Within(5, 2.0), {}),
    "ten in ten seconds": (lambda: Within(10, 10.0), {}),
    "ten in ten seconds, told": (lambda: Within(10, 10.0, hint=True), {}),
    "twenty in thirty seconds": (lambda: Within(20, 30.0), {}),
    "sixty a minute": (lambda: Within(60, 60.0), {"questions": 200}),
    "ten in five seconds of a clock": (lambda: ByTheClock(10, 5.0), {}),
    "twenty a minute of a clock": (lambda: ByTheClock(20, 60.0), {"questions": 60}),
    "twenty a minute of a clock, told": (lambda: ByTheClock(20, 60.0, hint=True), {"questions": 60}),
    "a burst of ten, then one a second": (lambda: Filling(10, 1.0), {}),
    "a burst of thirty, then one a second, told": (lambda: Filling(30, 1.0, hint=True), {}),
    "two at once": (lambda: AtOnce(2, 0.5), {"answers": 0.5}),
    "one at once": (lambda: AtOnce(1, 0.2), {"answers": 0.2}),
    "four at once, slow answers": (lambda: AtOnce(4, 5.0), {"answers": 5.0}),
    "two at once, told": (lambda: AtOnce(2, 1.0, hint=True), {"answers": 1.0}),
    "closed at first, then without a limit": (lambda: ClosedFor(0, 20.0, Within(1000, 1.0)), {}),
    "closed at first, then one a second": (lambda: ClosedFor(0, 20.0, Within(1, 1.0)), {}),
    "closed in between": (lambda: ClosedFor(3.0, 20.0, Within(1, 0.5)), {}),
    "closed for five minutes": (lambda: ClosedFor(0, 300.0, Within(1000, 1.0)), {}),
}
"""Endpoints, and the batch that they are asked: 40 questions at a time."""


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_a_batch_under_a_limit_takes_little_more_than_the_least_time(monkeypatch, limit):
    made, asked = limit
    asked = {"questions": 40, **asked}
    least = made().least(asked["questions"])
    last, answered, requests = batch(monkeypatch, made(), seconds=1000.0, **asked)
    assert answered == asked["questions"]
    assert last <= 2 * least + 3
    assert requests <= 3 * answered + 20


TENTHS = st.integers(1, 100).map(lambda tenths: tenths / 10)
HINTS, MANY = st.booleans(), st.integers(1, 30)
ENDPOINTS = st.one_of(
    st.builds(Within, MANY, TENTHS, HINTS, st.booleans()),
    st.builds(ByTheClock, MANY, TENTHS, HINTS),
    st.builds(Filling, MANY, TENTHS, HINTS),
)
CLOSED = st.tuples(st.integers(0, 20), st.integers(0, 60))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ENDPOINTS, CLOSED, st.integers(1, 60), st.floats(0.01, 5), st.floats(0.01, 0.5))
def test_all_questions_are_answered_within_a_few_times_the_least_time(
    monkeypatch, endpoint, closed, questions, answers, refusals
):
    start, lasts = closed
    limit = ClosedFor(start, start + lasts, endpoint)
    # Where refusals count, nothing is answered until a pause is longer than the interval.
    found = 8 * endpoint.interval if endpoint.counts else 0
    seconds = 3 * (limit.least(questions) + answers * questions / 16) + found + 15
    _, answered, _ = batch(monkeypatch, limit, questions, seconds, answers, refusals)
    assert answered == questions


def test_what_does_not_fit_into_the_time_is_not_waited_for(monkeypatch):
    last, answered, requests = batch(monkeypatch, Within(1, 5.0, hint=True), 40, seconds=23.0)
    assert answered in (4, 5) and last < 23.0 and requests < 40 + 5 * answered
    _, answered, requests = batch(monkeypatch, ClosedFor(0, 1e9, Within(1, 1.0)), 40, seconds=60.0)
    assert answered == 0 and requests < 60
