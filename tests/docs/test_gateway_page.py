"""The example of docs/gateway.md, as it stands there, beside a gateway in a process of its own."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.gateway import chat_run, commanded, running
from support.runs import coevo

from coevo.flows.endpoint import dialect
from coevo.utilities.local_http import free_port

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

CHECKED = """
from coevo.configs.env import HomeRulesConfig
from coevo.envs.registry import make

(task,) = make(HomeRulesConfig()).sample(1, ("a",))
print(checked("checked", task, ["look"]))
"""


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_example_runs_and_does_what_the_page_says(tmp_path):
    text, left_to_environment, _ = EXAMPLES
    (command,) = re.findall(r"^\$ coevo gateway first (.*)$", PAGE, re.MULTILINE)
    port = str(free_port())
    assert command.split() == ["--port", "5006"]
    with running(chat_run(tmp_path), "--port", port) as (gateway, _):
        script = [sys.executable, "-c", (text + left_to_environment + CHECKED).replace("5006", port)]
        here = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(script, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        kept = gateway.kept()["monday-1"]
    *turns, outcome, checked = done.stdout.splitlines()
    assert checked == "{'session': 'checked', 'end': 'outcome', 'reward': 0.0, 'success': False, 'scores': {}}"
    assert outcome == "{'session': 'monday-1', 'end': 'outcome'}"
    assert [line.split()[0] for line in turns] == ["first@3"] * 3
    assert (kept.group, kept.task.scope, len(kept.turns)) == ("monday", "lotus", 3)
    assert kept.turns[0].entries


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_run_of_the_page_learns_from_the_agent_of_the_page(tmp_path, monkeypatch):
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    (command,) = re.findall(r"^\$ coevo (run .*)$", PAGE, re.MULTILINE)
    line = [part.replace("64", "8").replace("=40", "=2") for part in shlex.split(command)]
    *_, text = EXAMPLES
    small = ["warmstart=null", "evaluation.tasks=4", "evaluation.final_panels=[]", "evaluation.every=9"]
    with commanded(tmp_path / "workspace", *line, *small) as (process, agent):
        text = text.replace("http://127.0.0.1:5007", agent.url).replace("range(64)", "range(8)")
        script = [sys.executable, "-c", text.replace("range(40)", "range(2)").replace("// 8", "// 4")]
        here = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(script, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        process.communicate()
        assert process.returncode == 0
    coevo("down", workspace=tmp_path / "workspace")
    assert done.stdout.split() == ["agent@0", "agent@1"]


def test_the_bounds_are_those_of_the_code():
    stated = re.search(r"at most ([\d,]+) messages, (\d+) tools and (\d+) answers", PAGE).groups()
    assert [int(each.replace(",", "")) for each in stated] == [dialect.MESSAGES, dialect.TOOLS, dialect.ANSWERS]
