"""A run that has lost something: run, revision and part are named, the rest can be read, and there is a way out."""

import json
import shutil
from datetime import timedelta
from pathlib import Path

import lancedb
import pytest
from support.damaged import Damaged, spoil
from support.disk import no_room

from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.utilities.errors import CoevoError

PRUNED = "ignore:optimize.cleanup_older_than=0:UserWarning"


@pytest.fixture
def copied(small_workspace, tmp_path, coevo, monkeypatch):
    root = tmp_path / "Übung 1" / "räum e"
    shutil.copytree(small_workspace, root)
    monkeypatch.setenv("COEVO_WORKSPACE", str(root))
    return root


def prune(root):
    """A cleanup by hand: removes all versions but the last."""
    bank = lancedb.connect(root / "runs/first/bank")
    for name in ("entries", "stats", "verdicts"):
        bank.open_table(name).optimize(cleanup_older_than=timedelta(0), delete_unverified=True)


def recover(root):
    workspace = Workspace(root)
    paths = workspace.existing("first")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        return lineage.recover(Bank(paths.bank))


@pytest.mark.parametrize(("harm", "said"), [(Path.unlink, "is missing"), (spoil, "is damaged")])
def test_an_object_of_an_old_revision(coevo, refused, copied, harm, said):
    for file in ("weights", None):
        path = Damaged(copied).stored(1, "policy", file)
        sound = path.read_bytes()
        harm(path)
        for command in (("rollback", "first", "--to", 1), ("evaluate", "first@1")):
            result = refused(*command)
            assert result.startswith(f"coevo: run 'first', revision 1: artifact 'policy': {path} {said}: restore it")
        assert not recover(copied)
        path.write_bytes(sound)
    harm(path)
    assert coevo("rollback", "first", "--to", 2).code == 0


def test_the_last_revision_is_damaged_and_an_earlier_one_is_the_way_out(coevo, copied):
    path = Damaged(copied).stored(3, "policy", "weights")
    spoil(path)
    linked = copied / "runs/first/lineage/policy/weights"
    linked.unlink()
    linked.hardlink_to(path)
    with pytest.raises(CoevoError, match=r"run 'first', revision 3: artifact 'policy': .* is damaged: .* rollback`"):
        recover(copied)
    assert coevo("rollback", "first", "--to", 2).code == 0
    assert not recover(copied)
    assert linked.read_text() == "policy of 2"


def test_an_object_that_the_cache_lost_but_the_run_still_has_does_not_stop_it(coevo, copied):
    Damaged(copied).stored(3, "policy", "weights").unlink()
    assert not recover(copied)


@pytest.mark.filterwarnings(PRUNED)
def test_a_version_of_the_bank_that_was_pruned(coevo, refused, copied):
    before = coevo("bank", "show", "first").out
    prune(copied)
    assert coevo("bank", "show", "first").out == before
    for command in (("bank", "show", "first@1"), ("rollback", "first", "--to", 1)):
        result = refused(*command)
        assert result.startswith("coevo: run 'first', revision 1: bank table entries: version ")
        assert "is gone" in result
    recover(copied)
    assert not recover(copied)
    assert json.loads(coevo("bank", "show", "other@1", "--json").out)
    assert len(json.loads(coevo("log", "first", "--json").out)) == 4


def test_a_table_that_is_gone_is_named_and_stays_for_fsck_to_find(coevo, refused, copied):
    gone = copied / "runs/first/bank/operations.lance"
    shutil.rmtree(gone)
    for command in (("bank", "log", "first"), ("bank", "show", "first")):
        assert "bank table operations cannot be read" in refused(*command)
        assert not gone.exists()
    assert "operations" in coevo("fsck", "first").out


def test_a_disk_without_room_is_one_line_and_nothing_is_lost(coevo, copied):
    with no_room():
        result = coevo("rollback", "first", "--to", 1)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("coevo: File too large: make room")
    assert not recover(copied)
    assert coevo("rollback", "first", "--to", 1).code == 0
