"""The worked example of docs/rows.md, as it stands there."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.chat_model import small_model
from support.row_tables import ROWS, written

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.envs.rows.python_tools import python_tools
from coevo.flows.cli.app import main
from coevo.flows.configure import configure
from coevo.records.answer_form import WholeForm

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rows.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?:python|yaml) (?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the page beside a table, on the import path."""
    for block in BLOCK.finditer(PAGE):
        (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
    written(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("rewards", None)


def test_from_file_to_training_takes_ten_lines_at_most():
    texts = {block["file"]: block["text"] for block in BLOCK.finditer(PAGE)}
    assert set(texts) == {"rewards.py", "train.py", "mine.yaml"}
    for part in ("train.py", "mine.yaml"):
        lines = [line for text in (texts["rewards.py"], texts[part]) for line in text.splitlines() if line.strip()]
        assert len(lines) <= 10


def test_the_recipe_of_the_page_is_what_the_script_says(folder):
    config = configure("mine.yaml")
    assert (config.env.path, config.evaluation.panels) == (str(folder / "tasks.jsonl"), ("held-out",))
    assert (config.context.parser, config.env.reward[0].title) == ("auto", "exact")
    env = make(config.env)
    (task,) = env.sample(1, ("a",))
    assert env.guide(task).answer == WholeForm()
    assert env.step([task], [task.data["row"]["answer"]])[0].success
    env.close()


def test_the_check_of_the_page_passes(folder, capsys):
    (command,) = re.findall(r"^\$ coevo (envs check .*)$", PAGE, re.MULTILINE)
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    assert stop.value.code == 0, capsys.readouterr().out


def test_the_settings_that_the_page_shows_are_possible(tmp_path):
    shown = re.findall(r"^```yaml\n(env:\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(shown) == 2
    for number, text in enumerate(shown):
        recipe = tmp_path / f"shown{number}.yaml"
        recipe.write_text(f"defaults: [recipes/rows-grpo]\n{text}")
        assert load_recipe(str(recipe)).env.reward
    settings = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("| setting |") : PAGE.index("A row stays")]))
    assert {"answer", "split", "held_out"} <= settings
    assert settings - {"train", "demonstration"} <= set(type(load_recipe("rows-grpo").env).model_fields)


def test_the_tool_of_the_page_is_one(tmp_path, monkeypatch):
    (text,) = re.findall(r"^```python\n(def population.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "lookups.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    (tool,) = python_tools(["lookups:population"])
    assert tool.schema["parameters"]["properties"]["year"]["description"] == "year of the census."


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_script_of_the_page_trains(folder, prefect_url, monkeypatch):
    model = small_model(folder / "model")
    short = '"iterations": 1, "rollout.tasks": 2, "rollout.group_size": 2, "rollout.sampling.max_new_tokens": 8'
    script = (folder / "train.py").read_text().replace('"DIR"', f'"{model}", {short}')
    (folder / "train.py").write_text(script)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}  # as in a reader's shell
    variables = {**kept, "PREFECT_API_URL": prefect_url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, check=False, env=variables
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (manifest,) = (folder / "workspace" / "runs").glob("*/lineage/manifest.json")
    assert "agent/rewards/train/exact" in manifest.read_text()
    assert len(ROWS) == 60


SHORT = (
    "iterations=1", "rollout.tasks=2", "rollout.group_size=2", "rollout.sampling.max_new_tokens=8",
    "evaluation.tasks=2", "bank.every=1", "bank.writer.model={type: policy, max_new_tokens: 32}",
    "bank.admission.replays=2",
)  # fmt: skip


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_command_with_a_bank_runs_and_is_evaluated_beside_none(folder, prefect_url):
    (command,) = re.findall(r"^\$ coevo (run rows-coevo-rl.*)$", PAGE, re.MULTILINE)
    words = [word.replace("=DIR", f"={small_model(folder / 'model')}") for word in shlex.split(command)]
    words = ["env.scope=null" if word == "env.scope=topic" else word for word in words]
    evaluate = ("evaluate", "mine", "--bank", "own", "--bank", "none", "--samples", "2", "--output", "results.jsonl")
    for line in ([*words, *SHORT, "--name", "mine"], evaluate):
        whole = [sys.executable, "-P", "-m", "coevo.flows", *line]
        variables = {**os.environ, "PREFECT_API_URL": prefect_url, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(whole, cwd=folder, capture_output=True, text=True, check=False, env=variables)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "own minus none" in done.stdout
    rows = [json.loads(each) for each in (folder / "results.jsonl").read_text().splitlines()]
    assert len(rows) == 2 * 2 * 2
    assert all("exact" in turn["scores"] for row in rows for turn in row["turns"])
