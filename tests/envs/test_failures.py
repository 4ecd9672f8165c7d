"""Exceptions of an environment on one line."""

import json

import pytest

from coevo.envs.failures import LONGEST, Loss, attempted


def raising(text):
    raise KeyError(text)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: raising("shelf"), "KeyError: 'shelf' (test_failures.py:11)"),
        (lambda: json.loads("{"), "(test_failures.py:18)"),  # raised in the standard library
    ],
)
def test_an_exception_names_the_line_of_the_environment(call, said):
    found = attempted(call)
    assert isinstance(found, Loss)
    assert found.detail.endswith(said)


def test_a_long_reason_is_cut_before_its_line():
    found = attempted(lambda: raising("x" * 1000))
    assert len(found.detail) == LONGEST
    assert found.detail.endswith("x (test_failures.py:11)")
    assert attempted(lambda: raising("a\nb\ud800")).detail == r"KeyError: 'a\nb\ud800' (test_failures.py:11)"
