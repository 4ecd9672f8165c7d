"""Every command helps with an example, mistakes are one line, and help is quick."""

import json
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer.main import get_command

from coevo.flows.cli.app import PANELS, app

ROOT = Path(__file__).parents[3]
HEAVY = {
    "coevo.configs.run_config", "dvc", "deepspeed", "great_expectations", "lancedb", "mlflow", "peft", "prefect",
    "pyarrow", "sklearn", "torch", "transformers",
}  # fmt: skip


def commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


ALL = list(commands(get_command(app)))


def test_the_commands_are_those_that_were_promised():
    promised = "run resume runs log compare ablate rollback play recipes methods doctor ui down"
    assert {(name,) for name in promised.split()} <= set(ALL)
    assert {("bank", name) for name in ("log", "show", "search", "why", "diff")} <= set(ALL)
    assert ("envs", "check") in ALL


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_help_has_an_example_of_the_command_and_fills_its_lines(coevo, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = coevo(*command, "--help")
    assert result.code == 0
    assert f"Example: coevo {' '.join(command)}" in " ".join(result.out.split())
    prose = [line.strip() for line in result.out.partition("╭")[0].splitlines()]
    for line, following in pairwise(prose):
        assert not (line and following) or len(f"{line} {following.split()[0]}") > 78, line


def test_without_a_command_there_is_help(coevo):
    result = coevo()
    assert result.code == 0
    assert "coevo [OPTIONS] COMMAND" in result.out
    assert all(f"─ {panel} ─" in result.out for panel in PANELS)


@pytest.mark.parametrize("command", ["--help", "recipes", "envs"])
def test_help_and_lists_load_nothing_heavy(command):
    loaded = f"lambda: print(sorted({HEAVY} & set(sys.modules)))"
    code = f"import atexit, sys; atexit.register({loaded}); from coevo.flows.cli.app import main; main(['{command}'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_dies_in_c_says_where():
    dying = "lambda: os.kill(os.getpid(), signal.SIGSEGV)"
    code = f"import os, signal; from coevo.flows.cli import app; app._program = {dying}; app.main([])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert "in main" in done.stderr


def test_status_shows_a_run_without_starting_a_server(coevo, small_workspace):
    done = coevo("status", "first")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("first: ")
    found = json.loads(coevo("status", "first", "--json").out)
    assert (found["run"], found["processes"], found["engines"], found["pool"]) == ("first", [], [], None)
    assert "No run 'nobody'" in coevo("status", "nobody").err
    assert not (small_workspace / "servers.json").exists()
