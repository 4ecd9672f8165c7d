"""Runs that cannot be read are listed with their faults, and stop no command on the others."""

import json
import re
import shutil
import subprocess

import pytest
from support.small_run import RECIPE

from coevo.configs.load.load import load_recipe
from coevo.flows.history.run_summaries import unfinished
from coevo.lineage.objects.cache import Cache
from coevo.lineage.workspace import Workspace


def change_config(run, change):
    config = json.loads((run / "config.json").read_text())
    change(config)
    (run / "config.json").write_text(json.dumps(config))


def config_a_folder(run):
    (run / "config.json").unlink()
    (run / "config.json").mkdir()


def lineage_a_file(run):
    shutil.rmtree(run / "lineage")
    (run / "lineage").write_text("x")


def git(run, *arguments):
    done = subprocess.run(["git", *arguments], cwd=run / "lineage", capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(run, manifest):
    """Make the last revision one with another manifest."""
    (run / "lineage" / "manifest.json").write_text(manifest)
    git(run, "-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "--all", "--amend", "-mx")
    git(run, "update-ref", "refs/tags/r3", "HEAD")


def commit_state(run, **state):
    manifest = json.loads((run / "lineage" / "manifest.json").read_text())
    manifest["state"].update(state)
    commit(run, json.dumps(manifest))


def manifest_object_gone(run):
    name = git(run, "rev-parse", "r3:manifest.json")
    (run / "lineage" / ".git" / "objects" / name[:2] / name[2:]).unlink()


def dangling_link(run):
    shutil.rmtree(run)
    run.symlink_to(run.parent.parent / "gone")


UNDATED = {
    "created_in_words": lambda run: (run / "created").write_text("yesterday\n"),
    "created_missing": lambda run: (run / "created").unlink(),
    "created_too_long": lambda run: (run / "created").write_text("9" * 5000),
    "dangling_link": dangling_link,
}
UNTOLD = UNDATED | {
    "lineage_a_file": lineage_a_file,
    "manifest_a_list": lambda run: commit(run, "[1, 2]"),
    "manifest_in_a_circle": lambda run: commit_state(run, restored_from=3),
    "manifest_no_json": lambda run: commit(run, "half"),
    "manifest_object_gone": manifest_object_gone,
    "manifest_without_config": lambda run: commit_state(run, config={}),
    "no_repository": lambda run: shutil.rmtree(run / "lineage" / ".git"),
}
"""Damage that hides which artifacts the run keeps."""
TOLD = {
    "config_a_folder": config_a_folder,
    "config_missing": lambda run: (run / "config.json").unlink(),
    "config_no_text": lambda run: (run / "config.json").write_bytes(b"\xff\xfe\x00{"),
    "empty_config": lambda run: (run / "config.json").write_text("{}"),
    "unknown_part": lambda run: change_config(run, lambda config: config["bank"]["writer"].update(type="newer")),
}
KINDS = UNTOLD | TOLD
COMMANDS = (
    ("log", "first"),
    ("compare", "first", "bankless"),
    ("bank", "log", "first"),
    ("approve", "--list"),
    ("report", "first", "--output", "report.html"),
    ("tag", "first@1", "best"),
    ("branch", "first@1", "gentler", "update.optimizer.lr=1e-5"),
    ("rollback", "first", "--to", "1"),
    ("push", "remote", "first"),
)
"""On another run."""


@pytest.fixture
def broken(copied):
    """In place of the run ``other``, a copy of it with each kind of damage, by name; the directory of the runs."""
    return break_as(copied / "runs", KINDS)


def break_as(runs, kinds):
    for name, harm in kinds.items():
        harm(shutil.copytree(runs / "other", runs / name))
    shutil.rmtree(runs / "other")
    return runs


def test_each_is_listed_with_its_fault_in_one_line_and_fsck_names_it(coevo, broken):
    listed = coevo("runs", "--json")
    assert (listed.code, listed.err) == (0, "")
    rows = {row["run"]: row for row in json.loads(listed.out)}
    assert list(rows)[: len(UNDATED) + 1] == [*UNDATED, "first"]
    assert list(rows)[-2:] == ["bankless", "new"]
    assert [(rows[name]["status"], rows[name]["fault"]) for name in ("first", "bankless", "new")] == [
        ("stopped", None), ("stopped", None), ("new", None),
    ]  # fmt: skip
    assert len(rows) == len(KINDS) + 3
    said = coevo("runs")
    assert (said.code, said.err) == (0, "")
    checked = coevo("fsck")
    assert (checked.code, "Traceback" in checked.err) == (1, False)
    for name in KINDS:
        fault = rows[name]["fault"]
        assert rows[name]["status"] == "faulty", name
        assert f"coevo fsck {name}" in fault or "`coevo fsck`" in fault, name
        assert f"{name}: {fault}" in said.out.splitlines()
        assert re.search(rf"^{name}: \d+ revisions, [1-9]", checked.out, re.MULTILINE), name


def test_a_command_on_another_run_does_not_mind(coevo, copied, broken, monkeypatch):
    monkeypatch.chdir(copied)
    for command in COMMANDS:
        result = coevo(*command)
        assert result.code == 0, (command, result.err)


def test_nothing_that_it_may_need_is_collected(coevo, copied):
    """With any of the damage that hides what a run keeps; the other damage stops nothing."""
    runs, held = copied / "runs", Cache(copied / "cache").objects()
    gc = ("gc", "first", "--keep-last", "1", "--apply")
    for name, harm in UNTOLD.items():
        whole = shutil.copytree(runs / "other", copied / "whole")
        harm(runs / "other")
        result = coevo(*gc)
        assert (result.code, result.err.count("\n")) == (2, 1), name
        assert Cache(copied / "cache").objects() == held, name
        remove(runs / "other")
        whole.rename(runs / "other")
    break_as(runs, TOLD)
    result = coevo(*gc)
    assert result.code == 0, result.err
    assert "first drops 1, 2 " in result.out


def remove(run):
    run.unlink() if run.is_symlink() else shutil.rmtree(run)


@pytest.mark.full
def test_a_command_on_itself_is_one_line(coevo, broken):
    for name in KINDS:
        for command in (("resume", name), ("log", name), ("compare", name, "first"), ("rollback", name, "--to", 1)):
            result = coevo(*command)
            assert result.code == 2 or command[0] != "resume"
            assert result.code == 0 or (result.code, result.err.count("\n")) == (2, 1), (command, result.err)


def test_the_others_are_pushed_and_the_fault_is_said(coevo, broken, tmp_path):
    result = coevo("push", tmp_path / "remote")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("coevo: not pushed, cannot be read: ")
    assert all(f" {name}: " in result.err for name in KINDS)
    pulled = coevo("pull", tmp_path / "remote", "--workspace", tmp_path / "pulled")
    assert pulled.code == 0, pulled.err
    assert {paths.name for paths in Workspace(tmp_path / "pulled").runs()} == {"first", "bankless"}


def test_a_new_run_has_a_name_of_its_own_and_comes_after_those_that_can_be_read(copied, broken):
    workspace = Workspace(copied)
    config = load_recipe(RECIPE)
    assert unfinished(RECIPE, workspace).paths.name == "new"
    for number, name in enumerate(KINDS, 7):
        (broken / name).rename(broken / f"{RECIPE}-{number}")
        assert workspace.next_name(RECIPE) == f"{RECIPE}-{number + 1}", name
    assert workspace.create(f"{RECIPE}-99", config).moment > workspace.existing("new").moment


@pytest.mark.parametrize("kind", ["dangling_link", "created_missing"])
def test_its_name_is_taken(refused, copied, kind):
    KINDS[kind](copied / "runs" / "other")
    assert "run 'other' is already in" in refused("branch", "first@1", "other")
