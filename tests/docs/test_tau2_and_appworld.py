"""The commands of docs/tau2-and-appworld.md, with stand-ins of both benchmarks."""

import re
import shlex

import pytest
from support.app_data import app_data, interpreter
from support.bench_checkout import checkout
from support.completions import completions, said
from support.guide_files import DOCS

from coevo.flows.cli.app import main

PAGE = (DOCS / "tau2-and-appworld.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ coevo (.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(capsys, tmp_path, monkeypatch, command):
    for name in ("bench", "world"):
        (tmp_path / name).mkdir()
    monkeypatch.delenv("TAU2_BENCH_PYTHON", raising=False)
    monkeypatch.setenv("TAU2_BENCH_DIR", str(checkout(tmp_path / "bench")))
    monkeypatch.setenv("APPWORLD_ROOT", str(app_data(tmp_path / "world")))
    monkeypatch.setenv("APPWORLD_PYTHON", interpreter(tmp_path))
    with completions(lambda request: said("it is closed")) as (url, _):
        words = [word.replace("http://127.0.0.1:8000/v1", url) for word in shlex.split(command)]
        with pytest.raises(SystemExit) as stopped:
            main(words)
    shown = capsys.readouterr().out
    assert stopped.value.code == 0, shown
    assert ("reward 1" if words[0] == "play" else "ok    no failures") in shown


def test_the_page_names_the_commands():
    assert [command.split()[0] for command in COMMANDS] == ["envs", "play", "envs", "envs", "play"]
