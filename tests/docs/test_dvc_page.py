"""The page about DVC: its commands answer in the repository of a run and leave nothing there."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support import small_run
from support.guide_files import DOCS
from support.kept import history
from support.runs import coevo

COMMANDS = re.findall(r"^\$ (.+)$", (DOCS / "dvc.md").read_text(encoding="utf-8"), re.MULTILINE)
RUN = "first"


def call(line, folder, workspace):
    """Output of a command of the page, for the run of the test."""
    program, *words = shlex.split(line.replace("homerules-coevo-rl-1", RUN))
    if program == "coevo":
        target = folder / words[-1]
        target.parent.mkdir(exist_ok=True)
        if words[-2] == ">":
            done = coevo(*words[:-2], workspace=workspace)
            target.write_text(done.stdout)
        else:
            done = coevo(*words[:-1], target, workspace=workspace)
    else:
        assert program == "dvc"
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            [program, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.full
@pytest.mark.timeout(900)
def test_each_command_answers_and_leaves_the_repository_as_it_was(tmp_path):
    small_run.build(tmp_path)
    folder = tmp_path / "runs" / RUN / "lineage"
    found = coevo("fsck", RUN, "--json", workspace=tmp_path)
    enter, *lines = COMMANDS
    assert enter == "cd workspace/runs/homerules-coevo-rl-1/lineage"
    shown, diff, _, plot, _, _ = [call(line, folder, tmp_path) for line in lines]
    manifests = history(tmp_path, RUN)
    name, last = f"agent/success/{small_run.PANEL}", manifests[-1].state["metrics"]
    assert json.loads(shown)[""]["data"]["manifest.json"]["data"]["state"]["metrics"][name] == last[name]
    assert json.loads(diff)["manifest.json"][f"state.metrics.{name}"]["new"] == last[name]
    values = json.loads(plot)["data"]["values"]
    assert [row["held_out"] for row in values] == [each.state["metrics"].get(name) for each in manifests]
    page = (folder / ".dvc" / "tmp" / "plots" / "index.html").read_text(encoding="utf-8")
    assert "<img" in page
    assert not re.search(r"https?://|<script", page)
    status = ["git", "status", "--porcelain"]
    assert subprocess.run(status, cwd=folder, capture_output=True, text=True, check=True).stdout == ""
    after = coevo("fsck", RUN, "--json", workspace=tmp_path)
    assert (after.returncode, after.stdout) == (found.returncode, found.stdout)
