"""Text of the world is printed as text."""

import json

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
