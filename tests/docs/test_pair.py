"""Commands of docs/pair.md: pairings are ready to start, and the table is made of what the page names."""

import re
import shlex
from pathlib import Path

import pytest
from support import small_run
from support.chat_model import small_model

from coevo.flows.cli.app import main

PAGE = (Path(__file__).parents[2] / "docs/pair.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^\$ (coevo .*)$", PAGE, re.MULTILINE)]
RUNS = {"slea-1": (0, "1111", []), "slea-2": (1, "1101", []), "grpo-1": (0, "0000", ["bank=null"]),
        "grpo-2": (1, "1000", ["bank=null"]), "frozen-1": (0, "1000", ["update=null"]),
        "frozen-2": (1, "1100", ["update=null"])}  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COEVO_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setenv("EXAMPLE_API_KEY", "none")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    return tmp_path


def run(words, capsys):
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main(words)
    said = capsys.readouterr()
    return stopped.value.code, said.out, said.err


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] != "table"], ids=lambda words: words[-1])
def test_a_pairing_of_the_page_is_ready(words, here, capsys):
    if "./qwen3-0.6b" in words:
        small_model(here / "qwen3-0.6b", positions=2**17)
    code, out, err = run(words, capsys)
    assert code == 0, out + err
    assert out.splitlines()[-1] == "ready to start" or words[0] == "recipes"


def test_the_table_of_the_page_is_made_and_refused_as_it_says(here, capsys):
    for name, (seed, last, more) in RUNS.items():
        small_run.build(here / "workspace", name, [f"seed={seed}", *more], ("0000", None, None, last))
    code, out, _ = run(next(words for words in COMMANDS if words[0] == "table"), capsys)
    shown = re.search(r"^(homerules seen-houses), 192( tasks, .*)\n(method.*)$", PAGE, re.MULTILINE)
    assert code == 0 and out.splitlines()[0] == f"{shown[1]}, 4{shown[2]}"
    assert out.splitlines()[1].split() == shown[3].split()
    code, _, err = run(["table", "slea-1"], capsys)
    refusal = re.search(r"^A table has rows.*?\n```", PAGE, re.MULTILINE | re.DOTALL)[0].removesuffix("\n```")
    assert code == 2 and err == f"coevo: {' '.join(refusal.split())}\n"
