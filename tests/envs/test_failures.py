"""Exceptions of an environment on one line."""

import asyncio
import json
import sys

import pytest

from coevo.envs.failures import LONGEST, Loss, attempted


def raising(text):
    raise KeyError(text)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: raising("shelf"), "KeyError: 'shelf' (test_failures.py:13)"),
        (lambda: json.loads("{"), "(test_failures.py:20)"),  # raised in the standard library
    ],
)
def test_an_exception_names_the_line_of_the_environment(call, said):
    found = attempted(call)
    assert isinstance(found, Loss)
    assert found.detail.endswith(said)


def test_a_long_reason_is_cut_before_its_line():
    found = attempted(lambda: raising("x" * 1000))
    assert len(found.detail) == LONGEST
    assert found.detail.endswith("x (test_failures.py:13)")
    assert attempted(lambda: raising("a\nb\ud800")).detail == r"KeyError: 'a\nb\ud800' (test_failures.py:13)"


async def cancelled():
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: asyncio.run(cancelled()), "CancelledError: ("),
        (lambda: sys.exit("no\nserver"), "SystemExit: no server ("),
    ],
)
def test_what_an_environment_cancels_or_exits_from_is_its_failure(call, said):
    found = attempted(call)
    assert found.kind == "exception"
    assert found.detail.startswith(said)


def test_an_interrupt_is_no_failure_of_an_environment():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempted(interrupted)
