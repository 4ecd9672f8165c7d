"""A pulled run over a table: nothing is read, imported or asked before its user confirms it."""

import json
import sys

import pytest
from support import small_run
from support.row_tables import written

from coevo.configs.load.load import load_recipe
from coevo.configs.trust_settings import chosen
from coevo.lineage.workspace import Workspace

NAMES = ["env.path", "env.reward", "env.tools", "python_path"]


@pytest.fixture
def pulled(tmp_path):
    """A workspace with a run over a table that nobody confirmed, and the mark that its module leaves when imported."""
    mark = tmp_path / "imported"
    (tmp_path / "traps.py").write_text(f"open({str(mark)!r}, 'w')\ndef one(answer, row):\n    return 1.0\n")
    env = {"type": "rows", "path": str(written(tmp_path)), "reward": "traps:one", "tools": ["traps:one"]}
    small_run.build(tmp_path / "mine", overrides=[f"env={json.dumps(env)}", f"python_path=[{tmp_path}]"])
    (tmp_path / "mine" / "trusted.json").unlink(missing_ok=True)
    yield tmp_path / "mine", mark
    sys.modules.pop("traps", None)


@pytest.mark.parametrize("command", [("resume", "first"), ("evaluate", "first"), ("package", "first")])
def test_what_a_table_names_is_confirmed_before_it_is_used(pulled, coevo, command):
    workspace, mark = pulled
    (workspace.parent / "tasks.jsonl").write_text("no table")
    done = coevo(*command, "--workspace", workspace)
    assert done.code == 2
    assert f"--trust {','.join(NAMES)}" in done.err
    assert "no table" not in done.err
    assert not mark.exists()


def test_reading_a_run_reads_no_table(pulled, coevo):
    workspace, mark = pulled
    (workspace.parent / "tasks.jsonl").unlink()
    for command in (("runs",), ("log", "first"), ("bank", "log", "first")):
        done = coevo(*command, "--workspace", workspace)
        assert done.code == 0, done.err
    assert not mark.exists()


def test_every_part_of_a_reward_is_shown(pulled):
    workspace, _ = pulled
    config = Workspace(workspace).existing("first").read_config()
    found = {each.name: each.value for each in chosen(config)}
    assert [name for name in found if name in NAMES] == ["env.path", "env.reward", "env.tools", "python_path"]
    assert found["env.reward"][0]["function"] == "traps:one"
    judge = "{type: judge, url: 'http://h/v1', model: m, prompt: '{answer}', key: SECRET}"
    other = load_recipe("rows-grpo", [f"env.reward=[{judge}]"])
    (reward,) = [each.value for each in chosen(other) if each.name == "env.reward"]
    assert (reward[0]["url"], reward[0]["key"]) == ("http://h/v1", "SECRET")
