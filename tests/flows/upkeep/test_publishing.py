"""Publishing for commands without a loop, on a run with the real stores."""

import shutil
import subprocess
from datetime import timedelta

import lancedb
import pytest
from support.fsck import fsck
from support.remotes import forget
from support.runs import published

from coevo.flows.upkeep.gc import collect
from coevo.flows.upkeep.publishing import complete, publish_if_quick
from coevo.flows.upkeep.workspace_check import WorkspaceCheck, repair_run
from coevo.lineage.lineage import Lineage
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.retention import RetentionRule
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.utilities.errors import CoevoError


@pytest.fixture
def workspace(built, tmp_path, monkeypatch):
    """A copy of it that may be changed, and publishes into its own database."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Workspace(shutil.copytree(built, tmp_path / "copy"))


@pytest.fixture
def paths(workspace):
    return workspace.existing("first")


@pytest.mark.filterwarnings("ignore:optimize.cleanup_older_than=0:UserWarning")
def test_what_a_finished_run_could_not_publish_comes_later_even_where_its_bank_was_pruned(workspace, paths, capsys):
    bank = lancedb.connect(paths.bank)
    for name in ("entries", "stats", "verdicts"):
        bank.open_table(name).optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
    complete(workspace, paths)
    assert Cursor(paths.published).read() == 3
    assert [line.split(":")[1] for line in capsys.readouterr().err.splitlines()] == [
        f" revision {number} is published without its bank" for number in range(4)
    ]
    (workspace.root / "mlflow.db").unlink()
    complete(workspace, paths)
    assert not (workspace.root / "mlflow.db").exists()


def test_what_takes_long_is_left_to_the_next_resume_and_then_published_once(workspace, paths, monkeypatch, capsys):
    monkeypatch.setattr("coevo.flows.upkeep.publishing.MAX_ENTRIES", 3_999)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        publish_if_quick(workspace, paths, lineage, Bank(paths.bank))
        assert "4 revisions are not published yet: `coevo resume`" in capsys.readouterr().out
        assert (Cursor(paths.published).read(), (workspace.root / "mlflow.db").exists()) == (-1, False)
        monkeypatch.setattr("coevo.flows.upkeep.publishing.MAX_ENTRIES", 4_000)
        publish_if_quick(workspace, paths, lineage, Bank(paths.bank))
    assert capsys.readouterr().out == ""
    complete(workspace, paths)
    assert published(workspace.root, "first") == [1, 2]


def test_a_database_with_options_in_its_address_is_found_again(workspace, paths, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'other.db'}?timeout=5")
    complete(workspace, paths)
    assert (tmp_path / "other.db").is_file()
    assert fsck(workspace.root) == []


@pytest.mark.full
def test_a_cursor_that_says_what_is_not_so_is_mended_once_mlflow_answers_and_only_then(workspace, paths, monkeypatch):
    for text in ('{"published": 9}', '{"published": -3}', ""):
        paths.published.write_text(text)
        check = WorkspaceCheck(workspace, lambda _: None)
        with pytest.raises(CoevoError, match=r"published.json .*: repair it with `coevo fsck first --repair`"):
            complete(workspace, paths)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        repair_run(check, paths)
        assert paths.published.read_text() == text
        monkeypatch.delenv("MLFLOW_TRACKING_URI")
        repair_run(check, paths)
        assert fsck(workspace.root) == []
        complete(workspace, paths)
        assert (published(workspace.root, "first"), Cursor(paths.published).read()) == ([1, 2], 3)


LEFT = {
    "no tag": lambda paths: git(paths, "update-ref", "-d", "refs/tags/r3"),
    "no tag, and its lock": lambda paths: (
        git(paths, "update-ref", "-d", "refs/tags/r3"),
        (paths.lineage / ".git/refs/tags/r3.lock").touch(),
    ),
    "a lock of the index": lambda paths: (paths.lineage / ".git/index.lock").touch(),
    "a lock of the branch": lambda paths: (paths.lineage / ".git/refs/heads/main.lock").touch(),
    "a lock of DVC": lambda paths: (
        (paths.lineage / ".dvc/tmp").mkdir(exist_ok=True),
        (paths.lineage / ".dvc/tmp/rwlock").write_text('{"policy": {"write": {"pid": 1, "cmd": "coevo"}}}'),
    ),
    "staged files": lambda paths: (
        (paths.staging / "policy").mkdir(parents=True),
        (paths.staging / "policy" / "weights").write_text("half"),
    ),
    "a changed file": lambda paths: (paths.lineage / "manifest.json").write_text("{}"),
    "an artifact that is gone": lambda paths: shutil.rmtree(paths.lineage / "policy"),
    "another file": lambda paths: (paths.lineage / "policy.dvc.new").write_text("half"),
    "tables ahead": lambda paths: forget(paths.root.parents[1], "never committed"),
}
"""Traces of a killed process in a run without remaining iterations."""


def git(paths, *arguments):
    subprocess.run(["git", *arguments], cwd=paths.lineage, check=True)


@pytest.mark.full
@pytest.mark.parametrize("left", LEFT)
def test_a_finished_run_is_recovered_as_one_with_remaining_iterations(workspace, paths, left):
    complete(workspace, paths)
    assert fsck(workspace.root, "first") == []
    LEFT[left](paths)
    assert fsck(workspace.root, "first")
    complete(workspace, paths)
    assert fsck(workspace.root, "first") == []
    collect(workspace, [], RetentionRule())


def test_a_finished_run_gets_the_tag_that_a_kill_left_out(workspace, paths):
    git(paths, "update-ref", "-d", "refs/tags/r3")
    with pytest.raises(CoevoError, match="the tag r3 is missing: `coevo fsck --repair` creates it; nothing"):
        collect(workspace, [], RetentionRule())
    complete(workspace, paths)
    collect(workspace, [], RetentionRule())
