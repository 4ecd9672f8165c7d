"""``--json`` of commands that change something: one document with what they made; ``--version`` and completion."""

import json
import shlex
from importlib.metadata import version

import pytest
from support.small_run import MUG
from typer.core import TyperGroup

from coevo.flows.cli import app
from coevo.tasks.bank_alone.standalone_bank import open_bank


def made(coevo, *line):
    told = coevo(*line, "--json")
    assert told.code == 0, told.err
    return json.loads(told.out)


def test_commands_that_change_a_run_say_what_they_made(copied, coevo, tmp_path):
    file = tmp_path / "notes.jsonl"
    exported = made(coevo, "bank", "export", "first@1", file)
    assert exported == {"revision": "first@1", "entries": 2, "file": str(file)}
    assert made(coevo, "tag", "first@1", "early") == {"tag": "early", "revision": "first@1"}
    assert made(coevo, "tag", "first", "early", "--delete") == {"tag": None, "revision": "first@1"}
    retired = made(coevo, "bank", "retire", "first", MUG.id, "--reason", "test")
    assert retired == {"entry": MUG.id, "revision": "first@4"}
    again = made(coevo, "bank", "retire", "first", MUG.id, "--reason", "test")
    assert again == {"entry": MUG.id, "revision": None}
    imported = made(coevo, "bank", "import", "first", file)
    assert imported == {"revision": "first@5", "added": 1, "known": 1}


def test_a_rollback_and_a_branch_name_their_revisions(copied, coevo):
    assert made(coevo, "rollback", "first", "--to", "2") == {"run": "first", "revision": 4, "restored_from": 2}
    branched = made(coevo, "branch", "first@2", "twig", "iterations=50")
    assert branched == {"run": "twig", "revision": 3, "parent": "first@2", "changed": []}


def options_by_command(group, before=()):
    """Options of each command below a group, by its name."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from options_by_command(command, (*before, name))
        else:
            yield " ".join((*before, name)), {option for each in command.params for option in each.opts}


def test_every_command_has_a_document():
    commands = dict(options_by_command(app._program()))
    assert [name for name, options in commands.items() if "--json" not in options] == []


def test_a_token_says_what_it_opens(coevo, tmp_path):
    open_bank(tmp_path / "memory")
    told = made(coevo, "bank", "token", tmp_path / "memory", "--user", "ann")
    assert told["opens"] == {"user": "ann"}
    assert told["token"] == coevo("bank", "token", tmp_path / "memory", "--user", "ann").out.strip()


def test_playing_and_new_packages_are_documents_too(coevo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    played = json.loads(coevo("play", "homerules", "--turns", "2", "--json").out)
    assert 1 <= len(played["turns"]) <= 2
    assert {"observation", "action", "thought", "feedback", "valid"} == set(played["turns"][0])
    made = json.loads(coevo("new", "recipe", "mine", "--json").out)
    assert all((tmp_path / file).is_file() for file in made["files"])


def test_servers_that_were_stopped_are_named(coevo, small_workspace):
    assert made(coevo, "down")["stopped"] == []


def test_the_version_is_that_of_the_package(coevo):
    assert coevo("--version").out == f"coevo {version('coevo')}\n"


@pytest.fixture
def completed(monkeypatch, capsys):
    """Words that a shell offers at the end of a line."""

    def offered(line, workspace):
        monkeypatch.setenv("COEVO_WORKSPACE", str(workspace))
        monkeypatch.setenv("_COEVO_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(shlex.split(line)) - (not line.endswith(" "))))
        with pytest.raises(SystemExit):
            app.main([])
        told = capsys.readouterr()
        assert told.err == ""
        return set(told.out.split())

    return offered


def test_a_shell_gets_the_words_that_may_follow(completed, tmp_path):
    assert completed("coevo bank re", tmp_path) == {"rejects", "retire", "retrieval"}


def test_a_shell_gets_the_names_of_runs_recipes_and_environments(completed, small_workspace, tmp_path):
    for line in ("coevo log fi", "coevo bank diff first fi", "coevo compare first fi", "coevo fsck f"):
        assert completed(line, small_workspace) == {"first"}, line
    assert completed("coevo report ", small_workspace) == {"first", "other", "bankless", "new"}
    assert completed("coevo log g", small_workspace) == completed("coevo log ", tmp_path) == set()
    given = f"--workspace {shlex.quote(str(small_workspace))}"
    assert completed(f"coevo log {given} f", tmp_path) == completed(f"coevo {given} log f", tmp_path) == {"first"}
    assert "homerules-coevo-rl" in completed("coevo run homerules-co", tmp_path)
    assert completed("coevo play homer", tmp_path) == {"homerules"}
