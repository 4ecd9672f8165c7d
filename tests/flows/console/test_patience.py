"""A step that takes long is named with its place, and a quick one says nothing."""

import re
import time

import pytest

from coevo.flows.console.patience import patience


def hang(until):
    while time.monotonic() < until:
        time.sleep(0.01)


def test_a_long_step_is_named_with_file_line_and_function_again_and_again(capsys):
    with patience("the check", 0.1):
        hang(time.monotonic() + 1.0)
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"the check has taken 0.1 s, and is at {__file__}, line \d+, in hang; Ctrl-C ends it", first)
    assert second.startswith("the check has taken 0.2 s")


def test_a_quick_step_says_nothing(capsys):
    with patience("the check", 5.0):
        pass
    assert capsys.readouterr().err == ""


def test_nothing_is_said_after_an_error(capsys):
    with pytest.raises(ZeroDivisionError), patience("the check", 0.05):
        _ = 1 / 0
    time.sleep(0.1)
    assert capsys.readouterr().err == ""
