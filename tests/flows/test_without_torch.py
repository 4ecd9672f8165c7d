"""A policy behind an endpoint in an interpreter that has no PyTorch: it plays, writes, admits and is evaluated."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.completions import completions
from support.endpoint_expert import ExpertEndpoint
from support.runs import states

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
WITHOUT = ("torch", "transformers", "peft", "deepspeed", "safetensors")
"""Modules of the extra ``train`` beyond those of ``api``."""
HIDDEN = f"""
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *found: None if name.partition(".")[0] in {WITHOUT} else find(name, *found)
"""
SETTINGS = (
    "homerules-experience-only-endpoint", "iterations=1", "bank.every=1", "rollout.tasks=4", "bank.writer.candidates=4",
    "bank.admission={replays: 2, delta: -1.0}", "evaluation={every: 1, tasks: 8, final_panels: []}",
)  # fmt: skip


@pytest.fixture
def bare(tmp_path):
    """Runs a command of an interpreter, its children included, that finds none of these packages."""
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "sitecustomize.py").write_text(HIDDEN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path / "hiding"), str(ROOT)))}

    def run(*arguments):
        line = [sys.executable, "-P", *arguments]
        return subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.mark.usefixtures("servers_end")
def test_it_plays_writes_admits_and_is_evaluated(bare, tmp_path):
    absent = bare("-c", "import torch")
    assert "No module named 'torch'" in absent.stderr
    workspace, endpoint = tmp_path / "workspace", ExpertEndpoint()

    def coevo(*arguments):
        done = bare("-m", "coevo.flows", *arguments, "--workspace", str(workspace))
        assert done.returncode == 0, done.stderr

    with completions(endpoint) as (url, _):
        policy = f"policy.url={url}"
        coevo("run", *SETTINGS, policy, "--dry-run")
        coevo("run", *SETTINGS, policy, "--name", "light")
        last = states(workspace, "light")[-1]
        assert last["metrics"]["bank/size"] > 0
        assert 0 < last["metrics"]["agent/success/seen-houses"] <= 1
        output = tmp_path / "episodes.jsonl"
        coevo("evaluate", "light", "--bank", "own", "--bank", "none", "--tasks", "4", "--output", str(output))
        assert {json.loads(line)["bank"] for line in output.read_text().splitlines()} == {"own", "none"}
        coevo("resume", "light", "--iterations", "2")
    assert len(states(workspace, "light")) == 3
