"""The worked examples of docs/adapters.md, as they stand there."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from docs.test_rows import small_model
from support.guide_files import DOCS, files_of
from support.openenv_server import serving
from support.row_tables import written

import coevo
from coevo.configs.load.load import load_recipe
from coevo.flows.cli.app import main
from coevo.flows.configure import configure
from coevo.flows.console.options import as_typed

ROOT = Path(__file__).parents[2]
PAGE = (DOCS / "adapters.md").read_text(encoding="utf-8")
FILES = files_of("adapters.md")
SCRIPTS = [name for name in FILES if name.startswith("train")]
CHECKS = re.findall(r"^\$ coevo (envs check .*)$", PAGE, re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the page, and a table, on the import path."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    written(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("lake", "counter", "grade"):
        sys.modules.pop(name, None)


def lines(*names):
    return [line for name in names for line in FILES[name].splitlines() if line.strip()]


def test_from_file_to_training_is_short():
    for names in (
        ("lake.py", "train.py"),
        ("lake.py", "lake.yaml"),
        ("train_openenv.py",),
        ("grade.py", "train_mcp.py"),
    ):
        assert len(lines(*names)) <= 15
    assert len(lines("train_counter.py")) <= 6  # beside an unchanged class


def started(script, monkeypatch):
    """Calls of ``coevo.run`` in a script."""
    asked = []
    monkeypatch.setattr(coevo, "run", lambda *given, **named: asked.append((given, named)), raising=False)
    runpy.run_path(script, run_name="__main__")
    return asked


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_of_the_page_is_a_possible_run(folder, script, monkeypatch):
    """Everything but the training: the settings of the run that the script starts."""
    (((recipe, *settings), named),) = started(script, monkeypatch)
    overrides = {**named["env"].settings(), **(settings[0] if settings else {})}
    if script == "train_verifiers.py":  # its tasks are where verifiers is
        config = load_recipe(recipe, as_typed(overrides))
    else:
        config = configure(recipe, as_typed(overrides))
        assert config.evaluation.panels == ("held-out",)
    assert config.env == named["env"].config
    assert set(named["env"].python_path) <= {str(folder), str(ROOT / "tests")}


def test_the_recipe_of_the_page_is_what_its_script_says(folder, monkeypatch):
    (((_,), named),) = started("train.py", monkeypatch)
    assert configure("lake.yaml").env == named["env"].config


@pytest.mark.parametrize("command", CHECKS, ids=lambda text: text.split()[2])
def test_the_checks_of_the_page_pass(folder, capsys, command):
    with serving() as url, pytest.raises(SystemExit) as stop:
        main(shlex.split(command.replace("http://localhost:8000", url)))
    assert stop.value.code == 0, capsys.readouterr().out


def test_settings_that_the_page_names_are_settings():
    table = PAGE[PAGE.index("| setting |") : PAGE.index("## Gymnasium")]
    named = {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    fields = set(type(coevo.from_factory("a:B").config).model_fields)
    assert {"tasks", "rows", "python"} <= named <= fields


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("script", ["train.py", "train_counter.py"])
def test_a_script_of_the_page_trains(folder, prefect_url, script):
    text = (folder / script).read_text()
    short = '"iterations": 1, "rollout.tasks": 2, "rollout.group_size": 2, "evaluation.tasks": 4'
    if script == "train.py":
        text = text.replace('("gymnasium-grpo", env', f'("gymnasium-grpo", {{{short}, "warmstart": None}}, env')
    else:
        tokens = '"rollout.sampling.max_new_tokens": 8, "rollout.max_turns": 8'
        text = text.replace('"DIR", "evaluation.tasks": 8', f'"{small_model(folder / "model")}", {short}, {tokens}')
    (folder / script).write_text(text)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}  # as in a reader's shell
    variables = {**kept, "PREFECT_API_URL": prefect_url, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((folder / "workspace" / "runs").glob("*/lineage/manifest.json"))) == 1
