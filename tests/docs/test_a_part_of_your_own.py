"""The part of docs/add-a-part.md that stands in a folder of its own: written, tested and run as the page says."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import coevo
from coevo.configs.load.open_parts import KINDS
from coevo.configs.outside_part import Part

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/add-a-part.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```\w+ (?P<file>[^\s/]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def example(tmp_path):
    for block in BLOCK.finditer(PAGE):
        (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
    return tmp_path


def ran(example, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=example, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_one_file_its_test_a_recipe_and_an_entry_point(example):
    assert sorted(path.name for path in example.iterdir()) == ["pyproject.toml", "rank.py", "rank.yaml", "test_rank.py"]
    declared = tomllib.loads((example / "pyproject.toml").read_text())["project"]["entry-points"]
    assert declared == {"coevo.advantages": {"rank": "rank:Rank"}}


def test_its_own_test_passes(example):
    ran(example, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "pythonpath=.", "test_rank.py")


def test_its_recipe_is_ready_to_start_and_shown_beside_another_method(example):
    said = json.loads(ran(example, "-m", "coevo.flows", "run", "rank.yaml", "--dry-run", "--json"))
    assert said["ready"]
    assert [(each["type"], each["options"]) for each in said["parts"]] == [("rank:Rank", {"scale": 2.0})]
    grpo, mine = json.loads(ran(example, "-m", "coevo.flows", "methods", "grpo", "rank.yaml", "--json"))
    assert (grpo["parts"]["advantage"], mine["parts"]["advantage"]) == ("grpo", "rank:Rank scale=2")


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_loop_runs_it(example, prefect_url, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    brief = ("iterations=1", "warmstart.steps=20", "warmstart.probe_every=20", "warmstart.probe_tasks=8",
             "rollout.tasks=2", "rollout.group_size=4", "evaluation.tasks=8", "evaluation.final_panels=[]")  # fmt: skip
    command = ("-m", "coevo.flows", "run", "rank.yaml", *brief, "--workspace", str(example / "workspace"))
    ran(example, *command, "--name", "example")
    (run,) = json.loads(ran(example, "-m", "coevo.flows", "runs", "--json", "--workspace", str(example / "workspace")))
    assert run["iteration"] == 1


def test_the_table_of_kinds_is_that_of_the_code():
    rows = re.findall(r"^\| `([\w.]+)` \| `coevo\.(\w+Part)` \| `([\w.]+)` \| `(\w+)\(.*?\|(.*)\|$", PAGE, re.MULTILINE)
    assert {setting for setting, *_ in rows} == KINDS.keys()
    for setting, name, group, method, stated in rows:
        base = getattr(coevo, name)
        assert issubclass(base, Part)
        assert (base.setting, KINDS[setting].group, base.__abstractmethods__) == (setting, group, {method})
        assert set(re.findall(r"`(\w+)`", stated)) - {"reflect"} == KINDS[setting].stated.keys()
