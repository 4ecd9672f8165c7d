"""Errors of Lance become one line that names the table, and a panic's report does not reach the terminal."""

import os

import pytest

from coevo.memory.bank.lance_errors import PANICS, UnreadableError, readable, said


@pytest.mark.parametrize(("version", "which"), [(None, ""), (0, "version 0: "), (7, "version 7: ")])
@pytest.mark.parametrize(
    "error", [ValueError, RuntimeError, OSError, *(type(name, (BaseException,), {}) for name in PANICS)]
)
def test_an_error_names_table_and_version_and_the_remedy(version, which, error):
    with pytest.raises(UnreadableError) as caught, readable("entries", version):
        raise error("bad\n file")
    assert str(caught.value) == f"bank table entries cannot be read: {which}bad file: `coevo fsck` lists remedies"
    assert caught.value.reason == "bad file"


@pytest.mark.parametrize("error", [KeyboardInterrupt, KeyError, AssertionError])
def test_what_damage_does_not_cause_is_raised_as_it_is(error):
    with pytest.raises(error), readable("entries"):
        raise error


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("task 17 panicked at x", "task panicked at x"),
        ("no file /tmp/coevo-abcd1234/data/a.lance", "no file data/a.lance"),
        ("not found, /root/.cargo/x/y.rs:12:34", "not found"),
        ("a" * 200, "a" * 160),
    ],
)
def test_a_message_is_short_and_has_nothing_that_varies(text, short):
    assert said(ValueError(text)) == short


REPORT = b"thread 'lance' panicked at src/a.rs:1:\nindex out of range\n\n"


def test_reports_of_panics_are_dropped_and_other_output_is_not(capfd):
    with readable("entries"):
        os.write(2, b"before\n" + REPORT + b"after\n")
    assert capfd.readouterr().err == "before\nafter\n"


def test_reports_are_dropped_until_the_last_reader_has_left(capfd):
    with readable("entries"):
        with readable("stats"):
            os.write(2, b"inner\n" + REPORT)
        os.write(2, b"outer\n" + REPORT)
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "inner\nouter\nafter\n"


def test_a_process_without_standard_error_reads_and_gets_none():
    kept = os.dup(2)
    os.close(2)
    try:
        with readable("entries"):
            pass
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(2)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
