"""The commands of docs/evaluate.md, with a small run, a small model and few tasks."""

import json
import re
import shlex

import pytest
from support.chat_model import small_model
from support.completions import completions
from support.endpoint_expert import ExpertEndpoint
from support.guide_files import DOCS
from support.packages import untrained
from support.small_run import build

from coevo.flows.cli.app import main
from coevo.lineage.workspace import Workspace
from coevo.memory.exchange.exchange import write_entries

PAGE = (DOCS / "evaluate.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ coevo (.*)$", PAGE, re.MULTILINE)
RUN, REVISION = "homerules-coevo-rl-1", "@40"
SHORT = ("rollout.max_turns=1", "rollout.sampling.max_new_tokens=4")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A reader's folder: a workspace with the run, a model, and notes."""
    monkeypatch.chdir(tmp_path)
    paths = build(tmp_path / "workspace", RUN, policy=untrained(tmp_path / "untrained"))
    small_model(tmp_path / "qwen3-0.6b")
    from coevo.flows.history.revision_reference import reading

    with reading(RUN, Workspace(paths.workspace.root)) as run:
        write_entries(run.bank().active(), tmp_path / "notes.jsonl")
    return tmp_path


@pytest.fixture
def url(monkeypatch):
    """Address of a model of a local server."""
    monkeypatch.setenv("EXAMPLE_API_KEY", "sk-of-the-page-0123456789")
    with completions(ExpertEndpoint()) as (served, _):
        yield served


def test_the_commands_of_the_page_work(folder, capsys, url):
    for line in COMMANDS:
        words = shlex.split(line.replace(f"{RUN}{REVISION}", RUN).replace("https://api.example.com/v1", url))
        few = ("--tasks", "2", "--samples", "2", *SHORT) if words[0] == "evaluate" else ()
        with pytest.raises(SystemExit) as stopped:
            main([*words, *few])
        assert stopped.value.code == 0, f"{line}: {capsys.readouterr()}"
        shown = capsys.readouterr().out
        assert (words[0] == "export") == shown.startswith("Wrote ")
    found = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert {row["bank"] for row in found} == {"own", "none"}
    named = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("| `task`") : PAGE.index("Turns of a served agent")]))
    assert named == set(found[0]) | set(found[0]["turns"][0]) | {"id", "text"}
    files = {path.name for path in (folder / "household").iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "bank.jsonl", "SKILL.md", "README.md"} <= files
