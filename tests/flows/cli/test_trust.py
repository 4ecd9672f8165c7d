"""A run that was pulled is a stranger's configuration: nothing in it is started, imported or reached unconfirmed."""

import functools
import json
import os
import pty
import subprocess
import sys

import pytest
from support import small_run

import coevo as api
from coevo.configs.load.load import load_recipe
from coevo.configs.trust_settings import chosen
from coevo.flows.cli.app import main
from coevo.flows.upkeep.branch import restore
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

NAMES = "env.type,env.options,policy.path,rollout.engine.python,placement.address,python_path"
READING = (
    ("runs",),
    ("log", "first"),
    ("compare", "first@2", "first@3"),
    ("report", "first", "--output", "{at}/report.html"),
    ("bank", "log", "first"),
    ("bank", "show", "first"),
    ("bank", "diff", "first@1", "first@3"),
    ("bank", "why", "first", small_run.MUG.id),
    ("bank", "export", "first", "{at}/notes.jsonl"),
    ("tag", "first@2", "seen"),
    ("rollback", "first", "--to", "2"),
    ("branch", "first", "mine", "update.optimizer.lr=1e-5"),
    ("bank", "import", "first", "{at}/notes.jsonl"),
    ("gc",),
    ("fsck",),
    ("fsck", "--repair"),
    ("push", "{at}/elsewhere"),
    ("approve", "--list"),
)
ACTING = (
    ("resume", "first"),
    ("resume", "first", "--accept-change", "--iterations", "50"),
    ("evaluate", "first"),
    ("evaluate", "first@1", "--json"),
    ("evaluate", "http://127.0.0.1:9", "--env", "first"),
    ("package", "first"),
    ("serve", "first@3"),
    ("branch", "first", "mine", "env.options={more: 1}"),
    ("bank", "search", "first", "heat mug"),
    ("schedule", "add", "first", "--cron", "0 2 * * *"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where an environment and an interpreter lie that leave a mark when they are imported or started."""
    home = tmp_path_factory.mktemp("traps")
    (home / "marks").mkdir()
    (home / "evil_env.py").write_text(f"open({str(home / 'marks' / 'imported')!r}, 'w')\n")
    (home / "hosts").write_text("machine slots=1\n")
    python = home / "python"
    python.write_text(f"#!/bin/sh\ntouch {home / 'marks' / 'started'}\n")
    python.chmod(0o755)
    return home


@pytest.fixture
def traps(home, monkeypatch):
    """The same on the import path, and no mark yet."""
    monkeypatch.syspath_prepend(home)
    yield home
    sys.modules.pop("evil_env", None)
    for mark in (home / "marks").iterdir():
        mark.unlink()


@pytest.fixture(scope="module")
def overrides(home):
    return [
        "env={type: 'evil_env:Evil', options: {a: 1}}",
        f"policy={{type: pretrained, path: {home}}}",
        "warmstart=null",
        "context.style=chat",
        f"rollout.engine={{type: vllm, python: {home / 'python'}}}",
        "placement={type: ray, address: 'there:6379', pools: {trainer: {}}}",
        f"python_path=[{home}]",
    ]


@pytest.fixture(scope="module")
def sent(tmp_path_factory, overrides):
    """A workspace with the run ``first`` of somebody else, who sent it to a remote; the directory of both."""
    root = tmp_path_factory.mktemp("sent")
    small_run.build(root / "theirs", overrides=overrides)
    with pytest.raises(SystemExit):
        main(["push", str(root / "remote"), "--workspace", str(root / "theirs")])
    return root


@pytest.fixture
def pulled(sent, tmp_path, coevo, monkeypatch, tracking_uri, traps):
    """A workspace that has pulled the run."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    monkeypatch.setenv("COEVO_WORKSPACE", str(tmp_path / "mine"))
    done = coevo("pull", sent / "remote", "--workspace", tmp_path / "mine")
    assert done.code == 0, done.err
    for name in NAMES.split(","):
        assert f"confirm before use: {name} = " in done.out
    return tmp_path / "mine"


def test_a_rollback_is_reported_before_that_it_was_not_published(pulled, capsys):
    workspace = Workspace(pulled)
    restore(workspace, workspace.existing("first"), 2, lambda line: print(line, file=sys.stderr))
    done, warning = capsys.readouterr().err.splitlines()
    assert done.startswith("Rolled back to revision 2; recorded as first@4")
    assert warning.startswith("coevo: not published: ")


def test_a_pull_for_programs_lists_what_is_to_be_confirmed(sent, tmp_path, coevo):
    done = coevo("pull", sent / "remote", "--json", "--workspace", tmp_path / "new")
    (row,) = json.loads(done.out)
    config = Workspace(tmp_path / "new").existing("first").read_config()
    assert row["to_confirm"] == [each._asdict() for each in chosen(config)]
    assert [each["name"] for each in row["to_confirm"]] == NAMES.split(",")


def marks(traps):
    return sorted(path.name for path in (traps / "marks").iterdir())


def rewrite(workspace, section, **values):
    """Put other values into the stored configuration of ``first``, unconfirmed; its paths."""
    paths = Workspace(workspace).existing("first")
    settings = json.loads(paths.config.read_text())
    functools.reduce(dict.__getitem__, section.split("."), settings).update(values)
    paths.config.write_text(json.dumps(settings))
    return paths


def test_a_command_that_would_act_on_it_refuses_in_one_line_that_names_all(pulled, refused, traps):
    for arguments in ACTING:
        said = refused(*arguments, workspace=pulled)
        assert f"--trust {NAMES}" in said, arguments
        assert '= "evil_env:Evil" (coevo imports it)' in said
        assert f'rollout.engine.python = "{traps}/python" (coevo starts it)' in said
        assert marks(traps) == [], arguments
        assert not (pulled / "servers.json").exists()
        assert [run.name for run in Workspace(pulled).runs()] == ["first"]


@pytest.mark.full
def test_commands_that_read_import_nothing_of_it(pulled, coevo, traps):
    for arguments in READING:
        done = coevo(*(each.replace("{at}", str(pulled.parent)) for each in arguments), "--workspace", pulled)
        assert done.code == 0, (arguments, done.err)
        assert marks(traps) == [], arguments
    assert not (pulled / "trusted.json").exists()


def test_python_refuses_and_confirms_by_name_too(pulled, traps):
    for act in (api.resume, api.evaluate, api.package):
        with pytest.raises(CoevoError, match=f"--trust {NAMES}"):
            act("first", workspace=pulled)
    with pytest.raises(CoevoError, match=r"--trust policy\.path"):
        api.trust("first", [name for name in NAMES.split(",") if name != "policy.path"], workspace=pulled)
    api.trust("first", ["policy.path"], workspace=pulled)
    assert marks(traps) == []


def test_what_is_confirmed_is_kept_outside_the_run_for_its_owner_alone_and_by_value(pulled, coevo, refused, traps):
    done = coevo("bank", "search", "first", "heat mug", "--trust", NAMES, "--workspace", pulled)
    assert done.code == 0, done.err
    kept = pulled / "trusted.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert json.loads(kept.read_text())["runs"]["first"]["env.type"] == ["evil_env:Evil"]
    assert coevo("bank", "search", "first", "heat mug", "--workspace", pulled).code == 0
    rewrite(pulled, "rollout.engine", python="/other")
    done = refused("resume", "first", "--workspace", pulled)
    assert "--trust rollout.engine.python " in done
    assert "env.type" not in done
    assert marks(traps) == []
    copy = pulled.with_name("copy")  # which confirms nothing
    pulled.rename(copy)
    pulled.mkdir()
    assert "env.type" in refused("bank", "search", "first", "mug", "--workspace", copy)


def test_the_end_of_a_name_is_enough_and_one_that_belongs_to_nothing_confirms_nothing(pulled, coevo, refused):
    for names, wrong in (("engine.pythn", "engine.pythn"), ("python_path,", ""), ("e", "e")):
        done = refused("resume", "first", "--trust", names, "--workspace", pulled)
        assert f"--trust '{wrong}': no setting to confirm matches that name" in done
        assert "rollout.engine.python" in done
        assert not (pulled / "trusted.json").exists()
    names = "type,options,path,engine.python,address,python_path"
    assert coevo("bank", "search", "first", "mug", "--trust", names, "--workspace", pulled).code == 0


def test_a_pull_never_confirms_and_forgets_an_earlier_run_of_the_name(sent, tmp_path, overrides, coevo):
    mine = tmp_path / "new"
    Workspace(mine).create("first", load_recipe(small_run.RECIPE, overrides))
    (mine / "runs" / "first").rename(tmp_path / "gone")
    assert coevo("pull", sent / "remote", "--workspace", mine).code == 0
    assert coevo("resume", "first", "--workspace", mine).code == 2


def test_what_a_user_sets_is_confirmed_and_what_a_branch_inherits_is_not(sent, pulled, coevo):
    made = coevo("branch", "first", "mine", "rollout.engine.python=/mine", "--workspace", pulled)
    assert made.code == 0, made.err
    done = coevo("resume", "mine", "--workspace", pulled)
    assert "--trust env.type,env.options,policy.path,placement.address,python_path" in done.err
    theirs = Workspace(sent / "theirs")
    assert theirs.trust.open_questions("first", theirs.existing("first").read_config()) == []
    assert coevo("branch", "first", "next", "--workspace", theirs.root).code == 0
    assert theirs.trust.open_questions("next", theirs.existing("next").read_config()) == []


def test_a_branch_leads_to_modules_here_where_those_of_its_run_are_elsewhere(tmp_path, coevo):
    away, here, workspace = (tmp_path / name for name in ("away", "here", "workspace"))
    away.mkdir()
    here.mkdir()
    small_run.build(workspace, overrides=[f"python_path=[{away}]"])
    away.rmdir()
    (workspace / "trusted.json").unlink()
    line = ("branch", "first", "mine", f"python_path=[{here}]", "--workspace", workspace)
    assert coevo(*line, "--trust", "python_path").code == 0


def test_a_run_made_before_there_was_such_a_file_is_asked_once(tmp_path, overrides, coevo):
    small_run.build(tmp_path, overrides=overrides)
    (tmp_path / "trusted.json").unlink()
    assert coevo("bank", "search", "first", "mug", "--workspace", tmp_path).code == 2
    assert coevo("bank", "search", "first", "mug", "--trust", NAMES, "--workspace", tmp_path).code == 0
    assert coevo("bank", "search", "first", "mug", "--workspace", tmp_path).code == 0


def test_shipped_values_are_nobodys_choice(tmp_path):
    assert list(chosen(load_recipe(small_run.RECIPE, ["rollout.engine.type=vllm"]))) == []
    small_run.build(tmp_path)
    assert not (tmp_path / "trusted.json").exists()


def test_a_damaged_file_confirms_nothing_and_is_named(pulled, refused):
    (pulled / "trusted.json").write_text('{"runs": 3')
    assert "trusted.json: damaged" in refused("resume", "first", "--workspace", pulled)


def test_a_stored_configuration_cannot_have_a_file_read(pulled, refused, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text('{"token": "hidden"}')
    rewrite(pulled, "update.deepspeed", settings=str(secret))
    done = refused("resume", "first", "--workspace", pulled)
    assert "a run stores the content, not a file's name" in done
    assert "hidden" not in done


def test_control_characters_in_a_value_are_shown_as_such(tmp_path, refused):
    small_run.build(tmp_path, overrides=["policy={type: pretrained, path: x}", "warmstart=null", "context.style=chat"])
    rewrite(tmp_path, "policy", path="a\u202e/b\x1b[2K")
    assert r'policy.path = "a\u202e/b\u001b[2K"' in refused("resume", "first", workspace=tmp_path)


def test_a_session_of_a_run_whose_settings_have_changed_meanwhile_runs_nothing(pulled, traps):
    from coevo.flows.sessions.scheduled_session import play

    workspace = Workspace(pulled)
    paths = workspace.existing("first")
    workspace.trust.confirm("first", chosen(paths.read_config()))
    rewrite(pulled, "env", options={"a": 2})
    with pytest.raises(CoevoError, match=r'env\.options = \{"a": 2\}.* add --trust env\.options '):
        play(workspace, paths, None, 3, None)
    assert marks(traps) == []


@pytest.mark.full
def test_on_a_terminal_each_setting_is_asked_for(pulled, tmp_path):
    def answered(*answers):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-P", "-m", "coevo.flows", "bank", "search", "first", "mug", "--workspace", pulled]
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path)
        os.close(theirs)
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        said = b""
        try:
            while part := os.read(ours, 4096):
                said += part
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(ours)
        return process.wait(60), said.decode()

    code, said = answered("y", "n")
    assert code == 2
    assert " starts ..." not in said.partition("Trust ")[2]
    assert 'env.type = "evil_env:Evil" (coevo imports it)' in said
    assert "env.options is not confirmed, so nothing was started" in said
    assert not (pulled / "trusted.json").exists()
    code, said = answered(*"yyyyyy")
    assert code == 0, said
    assert len(json.loads((pulled / "trusted.json").read_text())["runs"]["first"]) == 6
