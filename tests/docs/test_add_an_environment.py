"""The worked example of docs/add-an-environment.md, as it stands there."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.guide_files import files_of

from coevo.configs.env import PluginEnvConfig
from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.flows.cli.app import main
from coevo.lineage.trust import extend_path
from coevo.models.answers.read import Reader
from coevo.records.draws import key
from coevo.tasks.gates.environment_data import check_demonstrations, check_panel
from coevo.tasks.steps.evaluate import expert_success, play_expert

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The files that the page describes, on the import path."""
    for name, text in files_of("add-an-environment.md").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in ("lockers", "queries"):
        sys.modules.pop(name, None)


def recipe(example):
    """The page's recipe, its modules to be found as by ``coevo run``."""
    with contextlib.chdir(example):
        config = load_recipe("lockers.yaml")
    extend_path(config)
    return config


def test_the_environment_keeps_the_promises_of_its_interface(example):
    env = make(recipe(example).env)
    trained = env.sample(32, key("all"))
    panel = env.panel("new-items", 16)
    check_panel(panel, example / "quarantine")
    check_demonstrations(env.demonstrations(20, 10, key("shown")), example / "quarantine")
    assert len({task.id for task in trained}) == 32
    assert not {task.id for task in trained} & {task.id for task in panel.tasks}
    spoken = " ".join(shown.moment.instruction for shown in env.demonstrations(50, 0, key("words")))
    assert set(spoken.split()) <= set(env.vocabulary)


def test_the_expert_obeys_lessons_and_guesses_without(example):
    env = make(recipe(example).env)
    probe = env.probe(32, key("probe"))
    told = [
        [play_expert(env, task, lessons, key("expert"))[-1][2] for task, lessons in zip(probe.tasks, side, strict=True)]
        for side in (probe.right, probe.wrong)
    ]
    assert told == [[True] * 32, [False] * 32]
    assert 0.1 < expert_success(env, env.sample(32, key("blind")), key("guesses")) < 0.6


def test_the_command_line_plays_it(example, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["play", "lockers:TaughtLockers", "--python-path", str(example)])
    assert stop.value.code == 0
    assert "solved in 1 turn\n" in capsys.readouterr().out


def test_the_entry_point_names_the_class_of_the_recipe(example):
    declared = tomllib.loads((example / "pyproject.toml").read_text())
    registered = declared["project"]["entry-points"]["coevo.envs"]["lockers"]
    assert registered == load_recipe(str(example / "lockers.yaml")).env.type


def test_the_form_of_the_page_is_checked_and_read_as_it_says(example, monkeypatch, capsys):
    monkeypatch.chdir(example)
    (command,) = re.findall(
        r"^\$ coevo (envs check .*)$", (ROOT / "docs/add-an-environment.md").read_text(), re.MULTILINE
    )
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(command))
    said = capsys.readouterr().out
    assert stop.value.code == 0, said
    assert "ok    form: Action: with Operation, Answer; 2 examples read\n" in said
    assert "ok    answers: 2 actions\n" in said
    env = make(PluginEnvConfig(type="queries:Queries"))
    (task,) = env.sample(1, key("one"))
    reader = Reader(env.guide(task).answer)
    query = f"SELECT COUNT(*)\nFROM items\nWHERE colour = '{task.scope}';"
    (step,) = env.step([task], [reader.read(f"**Action:** Operation\n\nHere:\n```\n{query}\n```").action])
    assert step.observation == f"[({len(task.scope)},)]"
    assert env.step([task], [reader.read(f"Action: Answer\nFinal Answer: {len(task.scope)}").action])[0].success


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_loop_runs_it(example, prefect_url):
    def coevo(*arguments, code=0):
        command = [sys.executable, "-P", "-m", "coevo.flows", *arguments, "--workspace", str(example / "workspace")]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        env["PREFECT_API_URL"] = prefect_url
        done = subprocess.run(command, cwd=example, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr if code else done.stdout

    coevo("run", "lockers.yaml", "--name", "example")
    (run,) = json.loads(coevo("runs", "--json"))
    assert run["iteration"] == 6
    assert run["final_success"] > run["start_success"] + 0.2
    with (example / "lockers.py").open("a", encoding="utf-8") as module:
        module.write("\n# another rule\n")
    refused = coevo("resume", "example", "--iterations", "7", code=2)
    assert re.search(r"has changed since its last revision: module lockers: \w{12} -> \w{12};", refused)
    coevo("resume", "example", "--iterations", "7", "--accept-change")
    coevo("push", str(example / "remote"), "example")
