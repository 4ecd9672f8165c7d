"""The page of questions: each of its commands answers on the run that ships with coevo."""

import re
import shlex

import pytest
from support.guide_files import DOCS
from typer.core import TyperGroup

from coevo.flows.cli import app
from coevo.flows.sample.open_sample import unpack

ROW = re.compile(r"^\| (?P<question>[^|]+\?) \| `coevo (?P<command>[^`]+)` \| (?P<more>[^|]*)\|$", re.MULTILINE)
ROWS = list(ROW.finditer((DOCS / "questions.md").read_text(encoding="utf-8")))
ANSWERED = [row for row in ROWS if not row["more"].startswith("plays")]
PLAYS = [row for row in ROWS if row["more"].startswith("plays")]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
            patch.delenv(name, raising=False)
        yield unpack(tmp_path_factory.mktemp("questions")).root


def test_every_row_of_the_page_is_read_and_no_question_stands_twice():
    lines = (DOCS / "questions.md").read_text(encoding="utf-8").splitlines()
    assert len(ROWS) == len([line for line in lines if "?" in line and line.startswith("|")])
    assert len({row["question"] for row in ROWS}) == len(ROWS) == 24


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", ANSWERED, ids=lambda row: row["command"])
def test_a_question_is_answered_by_its_command(row, workspace, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COEVO_WORKSPACE", str(workspace))
    with pytest.raises(SystemExit) as stopped:
        app.main(shlex.split(row["command"]))
    said = capsys.readouterr()
    assert stopped.value.code == row["more"].startswith("exits with 1"), said.err
    assert said.out.strip()


@pytest.mark.parametrize("row", PLAYS, ids=lambda row: row["command"])
def test_what_plays_is_a_command_with_these_options(row):
    words = shlex.split(row["command"])
    command = app._program()
    while isinstance(command, TyperGroup):
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
