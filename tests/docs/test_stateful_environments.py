"""The worked example of docs/stateful-environments.md, as it stands there."""

import re
import sys
from pathlib import Path

import pytest

from coevo.configs.env import PluginEnvConfig
from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.flows.cli.app import main
from coevo.records.draws import key

PAGE = (Path(__file__).parents[2] / "docs/stateful-environments.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python (?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The file that the page describes, on the import path."""
    pytest.importorskip("gymnasium")
    (block,) = BLOCK.finditer(PAGE)
    (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield tmp_path
    sys.modules.pop("lake", None)


def test_the_example_is_short():
    (block,) = BLOCK.finditer(PAGE)
    lines = [line for line in block["text"].splitlines() if line.strip()]
    assert len(lines) <= 40


def test_the_example_trains_on_other_lakes_than_those_of_its_panel(folder):
    env = make(PluginEnvConfig(type="lake:Lake"))
    assert not [each for each in env.sample(20, key("a")) if each.data["number"] >= 10**6]


def test_the_recipe_of_the_page_is_one_for_a_model(folder, monkeypatch):
    (block,) = re.finditer(r"^```yaml mine.yaml\n(?P<text>.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "mine.yaml").write_text(block["text"], encoding="utf-8")
    monkeypatch.chdir(folder)
    config = load_recipe("mine.yaml")
    assert (config.env.type, config.env.options, config.env.simulator.workers) == ("lake:Lake", {}, 16)
    assert (config.context.style, config.context.memory_length) == ("conversation", None)
    assert config.rollout.sampling.max_new_tokens >= 256
    assert config.bank.writer.type.startswith("model-")
    assert set(config.evaluation.panels) == set(make(config.env).panels)


def test_the_command_of_the_page_finds_every_promise_kept(folder, capsys):
    (command,) = re.findall(r"^\$ coevo (envs check .*)$", PAGE, re.MULTILINE)
    with pytest.raises(SystemExit) as stop:
        main(command.replace(" . ", f" {folder} ").split())
    assert stop.value.code == 0
    said = capsys.readouterr().out
    names = (
        "no failures",
        "repeats",
        "pure",
        "rewards",
        "sample",
        "panel new-lakes",
        "guide",
        "form",
        "answers",
        "speed",
    )
    assert [line.partition(":")[0] for line in said.splitlines()] == [f"ok    {name}" for name in names]
    assert "guide: 4 verbs, all accepted\n" in said
    assert names == tuple(re.findall(r"^ok    ([^:]+):", PAGE, re.MULTILINE))


def test_the_command_fails_where_a_promise_is_broken(folder, capsys):
    text = (
        (folder / "lake.py")
        .read_text()
        .replace("', '.join(MOVES)}.\", MOVES)", "', '.join(MOVES)}.\", (*MOVES, 'fly'))")
    )
    (folder / "lake.py").write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["envs", "check", "lake:Lake", "--python-path", str(folder), "--action", "down", "--tasks", "1"])
    assert stop.value.code == 1
    assert "FAIL  guide: no step of lake accepts 'fly', a verb of its guide" in capsys.readouterr().out
