"""Exceptions of an environment on one line."""

import asyncio
import json
import sys

import pytest

from coevo.envs.failures import MAX_REASON_CHARS, EpisodeFailure, attempted


def raising(text):
    raise KeyError(text)


@pytest.mark.parametrize(
    ("call", "first", "last"),
    [
        (lambda: raising("shelf"), "KeyError: 'shelf' (", "(test_failures.py:13)"),
        (lambda: json.loads("{"), "JSONDecodeError: ", "(test_failures.py:20)"),  # raised in the standard library
        (lambda: asyncio.run(cancelled()), "CancelledError: (", ")"),
        (lambda: sys.exit("no\nserver"), "SystemExit: no server (", "(test_failures.py:22)"),
    ],
)
def test_an_exception_names_the_line_of_the_environment_which_may_cancel_or_exit(call, first, last):
    found = attempted(call)
    assert isinstance(found, EpisodeFailure)
    assert found.kind == "exception"
    assert found.detail.startswith(first)
    assert found.detail.endswith(last)


def test_a_long_reason_is_cut_before_its_line():
    found = attempted(lambda: raising("x" * 1000))
    assert len(found.detail) == MAX_REASON_CHARS
    assert found.detail.endswith("x (test_failures.py:13)")
    assert attempted(lambda: raising("a\nb\ud800")).detail == r"KeyError: 'a\nb\ud800' (test_failures.py:13)"


async def cancelled():
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


def test_an_interrupt_is_no_failure_of_an_environment():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempted(interrupted)
