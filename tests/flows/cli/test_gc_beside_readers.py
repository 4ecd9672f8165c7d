"""Commands that read while ``gc --apply`` drops and removes: none calls a revision damaged that gc is dropping."""

import re
import shutil

import pytest
from support.fsck import fsck
from support.small_run import MUG
from support.soak import mostly_soak

from coevo.flows.history import revision_reference
from coevo.flows.upkeep import workspace_check
from coevo.flows.upkeep.gc import collect
from coevo.lineage.remote import push as pushing
from coevo.lineage.remote.remote_objects import Objects
from coevo.lineage.revision.retention import RetentionRule
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import StoredBank
from coevo.tasks.checks.manifest_checks import BankCheck

DAMAGE = re.compile(r"damaged|missing|backup|corrupt|does not match|cannot be read|fsck")
DROPPED = "gc dropped revisions 1, 2 while they were read: repeat the command"
PUSHES = {
    "before the list of artifacts": (pushing, "_artifacts"),
    "before the bank": (pushing, "_bank"),
    "before the files of the bank": (pushing, "copy_bank"),
    "before the tables": (pushing, "check_tables"),
    "before the transfer": (Objects, "send"),
    "within the transfer": (Objects, "_send"),
    "before the record": (pushing, "_record"),
    "before the last check": (pushing, "_vet"),
}
CHECKS = {
    "before the artifacts": (workspace_check, "check_artifacts"),
    "before the bank": (BankCheck, "versions"),
    "before the work tree": (workspace_check, "check_checkout"),
    "before the history": (workspace_check, "check_history"),
}
READERS = (
    ("bank", "show", "first@2"),
    ("bank", "log", "first"),
    ("bank", "diff", "first@1", "first@2"),
    ("bank", "search", "first@2", "mug"),
    ("log", "first"),
    ("compare", "first", "other"),
    ("branch", "first@2", "mine"),
    ("rollback", "first", "--to", "2"),
    ("evaluate", "first@2"),
    ("bank", "why", "first@2", MUG.id),
    ("bank", "rejects", "first@2"),
    ("bank", "health", "first@2"),
    ("bank", "retrieval", "first@2"),
    ("bank", "export", "first@2", "OUT/bank.jsonl"),
    ("episodes", "first@2"),
    ("episodes", "first", "--training"),
    ("report", "first@2", "--output", "OUT/report.html"),
    ("report", "first", "--output", "OUT/report.html"),
    ("tag", "first@2", "good"),
)


@pytest.fixture
def beside(copied, monkeypatch):
    """Let gc run once, just before a function is called."""

    def at(module, name):
        real, done = getattr(module, name), []

        def call(*arguments, **named):
            if not done:
                done.append(True)
                collect(Workspace(copied), [], RetentionRule(last=1))
            return real(*arguments, **named)

        monkeypatch.setattr(module, name, call)
        return done

    return at


@pytest.mark.full
@pytest.mark.parametrize("point", mostly_soak([*PUSHES], *[*PUSHES][::3]))
def test_a_push_begins_again_without_what_gc_drops(beside, coevo, copied, tmp_path, point):
    done = beside(*PUSHES[point])
    pushed = coevo("push", tmp_path / "remote", "first")
    assert done
    assert pushed.code == 0, pushed.err
    pulled = coevo("pull", tmp_path / "remote", "first", "--workspace", tmp_path / "there")
    assert pulled.code == 0, pulled.err
    assert not [one for one in fsck(tmp_path / "there", "first") if DAMAGE.search(one.problem)]


def test_a_push_of_a_damaged_run_is_refused_beside_gc_too(beside, coevo, copied, tmp_path):
    weights = (copied / "runs/first/lineage/policy/weights").read_bytes()
    (struck,) = (
        path for path in (copied / "cache/files").rglob("*") if path.is_file() and path.read_bytes() == weights
    )
    struck.chmod(0o644)
    struck.write_bytes(b"?" * len(weights))
    beside(pushing, "_bank")
    done = coevo("push", tmp_path / "remote", "first")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "does not match its name" in done.err
    assert not (tmp_path / "remote" / "runs").exists()


@pytest.mark.full
@pytest.mark.parametrize("point", mostly_soak([*CHECKS], *[*CHECKS][::2]))
def test_fsck_looks_again_at_what_gc_drops(beside, copied, tmp_path, point):
    after = shutil.copytree(copied, tmp_path / "after")
    collect(Workspace(after), [], RetentionRule(last=1))
    expected = fsck(after, "first")
    done = beside(*CHECKS[point])
    assert fsck(copied, "first") == expected
    assert done


@pytest.mark.full
@pytest.mark.parametrize("command", READERS, ids=lambda command: " ".join(command[:2]))
def test_a_reader_does_not_call_damaged_what_gc_drops(beside, coevo, command, tmp_path):
    command = [part.replace("OUT", str(tmp_path)) for part in command]
    done = beside(revision_reference, "check")
    read = coevo(*command)
    assert done
    assert read.code == 0 or (read.code, read.err.count("\n")) == (2, 1), read.err
    assert not DAMAGE.search(read.err)
    assert read.code == 0 or DROPPED in read.err or "was dropped by gc" in read.err, read.err
    again = coevo(*command)
    assert not DAMAGE.search(again.err)


@pytest.mark.parametrize("command", READERS[:4], ids=lambda command: " ".join(command[:2]))
def test_a_reader_names_gc_and_then_the_dropped_revision(beside, coevo, command):
    beside(StoredBank, "at")
    read = coevo(*command)
    assert read.code == 0 or DROPPED in read.err, read.err
    if "2" in command[-1]:
        assert read.code == 2
        assert "was dropped by gc: kept ones are 0, 3" in coevo(*command).err
