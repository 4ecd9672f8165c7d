"""Every safeguard is needed: what it guards holds with it, and is seen not to hold once it is taken out.

``test_kills`` and ``tests/lineage/test_kills`` do the same for the restore of the bank, the reset of the work tree and
the checkout of artifacts.
"""

import shutil
import subprocess
from contextlib import suppress

import pytest
from mlflow import MlflowClient

from coevo.flows.upkeep.publishing import complete
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.utilities.errors import CoevoError


def recovers_from_a_killed_git(workspace, paths):
    """A run continues although a git command was killed while it held the index."""
    holder = subprocess.Popen(["git", "update-index", "--stdin"], cwd=paths.lineage, stdin=subprocess.PIPE)
    while not (paths.lineage / ".git" / "index.lock").exists():
        assert holder.poll() is None
    holder.kill()
    holder.communicate()
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        bank = Bank(paths.bank)
        lineage.recover(bank)
        assert lineage.rollback(1, bank).restored_from == 1


def refuses_damaged_weights(workspace, paths):
    """Weights that are not what their hash says never become a revision."""
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        content = lineage.history.manifest(1).artifacts["policy"]
        listing = (workspace.cache / "files" / "md5" / content[:2] / content[2:]).read_text()
        name = listing.partition('"md5": "')[2][:32]
        weights = workspace.cache / "files" / "md5" / name[:2] / name[2:]
        weights.chmod(0o644)
        weights.write_bytes(bytes(weights.stat().st_size))
        weights.chmod(0o444)
        with suppress(CoevoError):
            lineage.rollback(1, Bank(paths.bank))
        assert lineage.history.head().revision == 3


def publishes_what_was_committed(workspace, paths):
    """Every revision reaches MLflow, whoever died before."""
    complete(workspace, paths)
    client = MlflowClient(f"sqlite:///{workspace.root / 'mlflow.db'}")
    runs = client.search_runs([each.experiment_id for each in client.search_experiments()])
    assert [run.data.tags["coevo.revision"] for run in runs] == ["3"]


def has_one_writer(workspace, paths):
    """Nobody writes to a run that somebody else writes to."""
    with writer_lock(paths):
        try:
            with writer_lock(paths):
                pass
        except CoevoError as error:
            assert "is in use by process" in str(error)
        else:
            raise AssertionError("two writers")


SAFEGUARDS = {
    "index lock": (recovers_from_a_killed_git, "coevo.lineage.git.Git.settle"),
    "content hash": (refuses_damaged_weights, "coevo.lineage.objects.cache.Cache.check"),
    "publish cursor": (publishes_what_was_committed, "coevo.lineage.publish_cursor.Cursor.unpublished"),
    "file lock": (has_one_writer, "coevo.lineage.lock.FileLock.acquire"),
}


@pytest.fixture
def workspace(built, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Workspace(shutil.copytree(built, tmp_path / "copy"))


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_the_promise_holds_with_its_safeguard(workspace, safeguard):
    promise, _ = SAFEGUARDS[safeguard]
    promise(workspace, workspace.existing("first"))


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_without_it_the_promise_is_broken(workspace, safeguard, monkeypatch):
    promise, part = SAFEGUARDS[safeguard]
    monkeypatch.setattr(part, lambda *_, **__: [])
    with pytest.raises((AssertionError, CoevoError, StopIteration)):
        promise(workspace, workspace.existing("first"))
