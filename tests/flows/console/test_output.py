"""Text of the world is printed as text."""

import io
import json
import sys

import pytest

from coevo.flows.console import output


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, ""), (True, "yes"), (False, "no"), (0.12345, "0.123"), (3, "3"), ("a", "a")],
)
def test_cells_are_short(value, shown):
    assert output.cell(value) == shown


def test_markup_and_control_characters_do_nothing(capsys):
    output.table([{"text": "[bold]a[/bold] \x1b[31m\nb"}], ("text",))
    assert capsys.readouterr().out.splitlines()[1].rstrip() == "[bold]a[/bold]  [31m b"


def test_a_document_is_one_json_value_of_readable_text(capsys):
    output.document({"where": "café"})
    written = capsys.readouterr().out
    assert json.loads(written) == {"where": "café"}
    assert "café" in written


def test_a_table_that_is_too_wide_wraps_between_words_and_loses_nothing(capsys, monkeypatch):
    monkeypatch.setattr(output, "PIPED_WIDTH", 40)
    row = {"revision": 12, "in_words": "one two three four five", "id": "1b515f9a0c8f", "success": 0.5}
    output.table([row], tuple(row))
    head, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head == ["revision", "in", "words", "id", "success"]
    assert {word for line in lines for word in line} == {"12", "0.500", "1b515f9a0c8f", *row["in_words"].split()}
    output.table([{"id": "x" * 100}], ("id",))
    assert capsys.readouterr().out.count("x") == 100


def test_names_of_the_first_column_stay_whole_however_narrow_the_table(capsys, monkeypatch):
    monkeypatch.setattr(output, "PIPED_WIDTH", 40)
    row = {"name": "coevo-rl-delta", "paper": "supercalifragilistic", "needs": "antidisestablishmentarianism"}
    output.table([row], tuple(row))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[0] == "coevo-rl-delta"
    assert all(line.startswith(" ") for line in lines[2:])


def test_long_text_is_not_cut_where_it_is_piped(capsys):
    output.line("word " * 100)
    assert capsys.readouterr().out.count("\n") == 1


def written(encoding, monkeypatch, *printing):
    """Text that a terminal with few characters shows."""
    with monkeypatch.context() as changed:
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        changed.setattr(sys, "stdout", stream)
        changed.setattr(sys, "stderr", stream)
        output.degrade()
        for each in printing:
            each()
        stream.flush()
    return stream.buffer.getvalue().decode(encoding)


ENCODINGS = pytest.mark.parametrize(
    "encoding", ["ascii", "latin-1", "cp1252", "cp437", "koi8-r", "shift_jis", "big5", "iso-8859-7"]
)


@ENCODINGS
def test_a_terminal_that_lacks_characters_shows_replacements(encoding, monkeypatch):
    text = "open क्\u200dष 打开 é \U0001fae9 now"
    prints = (lambda: output.line(text), lambda: output.fault(text), lambda: output.table([{"text": text}], ("text",)))
    lines = [line.removeprefix("coevo: ").strip() for line in written(encoding, monkeypatch, *prints).splitlines()]
    assert len(lines) == 4 and lines[2] == "text"
    assert all(line.startswith("open ?") and line.endswith("? now") for line in (lines[0], lines[1], lines[3]))


@ENCODINGS
def test_a_document_loses_nothing_on_such_a_terminal(encoding, monkeypatch):
    value = {"text": "open क्\u200dष 打开 é \U0001fae9"}
    assert json.loads(written(encoding, monkeypatch, lambda: output.document(value))) == value


@pytest.mark.parametrize("text", ["क्\u200dष", "خانه\u200cها", "👩🏽\u200d🚀", "\U0001fae9"])
def test_text_that_is_only_read_is_shown_as_it_is(text):
    assert output.plain(text).plain == text
    assert output.plain(f"\x1b[31m{text}\u202e\n").plain == f" [31m{text}  "
