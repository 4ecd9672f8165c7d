"""The commands and the Python of docs/episodes.md, on a small run."""

import re
import shlex

import pyarrow.parquet as pq
import pytest
from support.guide_files import DOCS
from support.packages import untrained
from support.small_run import MUG, TASK, build

from coevo.flows.cli.app import main
from coevo.flows.history.played_episodes import played_again
from coevo.lineage.workspace import Workspace
from coevo.records.failure_reasons import FailureReason, LessonUse

PAGE = (DOCS / "episodes.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    policy = untrained(tmp_path / "untrained")
    build(tmp_path / "workspace", "household", ["rollout.max_turns=2"], policy=policy)
    return tmp_path


def test_the_commands_and_the_python_of_the_page_work(folder, capsys):
    for line in re.findall(r"^\$ coevo (.*)$", PAGE, re.MULTILINE):
        with pytest.raises(SystemExit) as stopped:
            main(shlex.split(line.replace("3a74c8", MUG.id[:6])))
        assert stopped.value.code == 0, line
    assert pq.read_table(folder / "failed.parquet").num_rows == 0  # the last revision solves all four
    found = played_again(Workspace(folder / "workspace").existing("household"), 3, TASK.id)
    banks = {each.side.partition(", ")[2] for each in found if each.side.startswith("training")}
    assert banks == {"bank own", "bank none"}
    capsys.readouterr()
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(code.replace('"household"', '"household@2"'), "page", "exec"), {})
    assert "wrong end" in capsys.readouterr().out


def test_the_tables_of_the_page_are_the_closed_lists():
    named = re.findall(r"^\| `([^`]+)` \| (.*) \|$", PAGE, re.MULTILINE)
    assert named == [(str(each), each.meaning) for each in (*FailureReason, *LessonUse)]
