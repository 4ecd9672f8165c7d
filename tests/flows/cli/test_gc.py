"""Collecting: what is shown is what is done, nothing that is kept changes, and the disk really has more room."""

import json
import subprocess

import pytest
from support import damaged_history as history
from support import damaged_stores as stores
from support.damaged import Damaged
from support.fsck import fingerprint
from support.kept import recovered, retained, whole
from support.small_run import MUG

from coevo.lineage.fsck.run_check import mend_branch
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.objects.cache import Cache, disk_usage
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.repository import Repository
from coevo.lineage.revision.retention import RetentionRule
from coevo.lineage.workspace import Workspace

RUNS = ("first", "other", "bankless")


def used(root):
    return disk_usage(root / "cache", root / "runs")


def exact(root):
    """Folders whose sizes the estimate knows to the byte."""
    return [root / "cache", *(root / "runs" / run / "bank" for run in RUNS)]


def everything(root, kept=range(4)):
    return {(run, revision): whole(root, run, revision) for run in RUNS for revision in kept}


def files(root):
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def test_it_is_only_shown_unless_asked_for_and_without_a_rule_all_are_kept(coevo, copied):
    before = files(copied)
    shown = coevo("gc", "first", "--keep-last", 1)
    assert shown.out.splitlines()[1:3] == ["  0: reference policy", "  3: last revision, last 1"]
    assert "first would drop 1, 2 (" in shown.out
    assert "--apply" in shown.out
    assert files(copied) == before
    shown = coevo("gc", "first").out.splitlines()
    assert "  1, 2: all kept: give --keep-last or --keep-every" in shown
    assert "  3: last revision" in shown


def test_every_run_is_collected_and_what_is_kept_reads_the_same(coevo, copied):
    before, size, parts = everything(copied, (0, 3)), used(copied), disk_usage(*exact(copied))
    shown = json.loads(coevo("gc", "--keep-last", 1, "--json").out)
    done = json.loads(coevo("gc", "--keep-last", 1, "--apply", "--json").out)
    assert [(row["run"], row["dropped"]) for row in done["runs"]] == [(run, [1, 2]) for run in RUNS] + [("new", [])]
    # Locks are made before it is measured, and tags are small files that move: otherwise all three are one number.
    assert done["freed"] == pytest.approx(size - used(copied), abs=32 * 1024)
    assert shown["bytes"] == done["bytes"] == pytest.approx(done["freed"], abs=32 * 1024)
    assert done["freed"] > 64 * 1024
    assert everything(copied, (0, 3)) == before
    assert done["bytes"] == parts - disk_usage(*exact(copied))
    assert [retained(copied, run) for run in RUNS] == [[0, 3]] * 3


def test_an_object_that_another_run_keeps_stays(coevo, copied):
    objects = Cache(copied / "cache").objects()
    before = everything(copied)
    coevo("gc", "first", "--keep-last", 1, "--apply")
    assert retained(copied, "first") == [0, 3]
    assert retained(copied, "other") == [0, 1, 2, 3]
    assert Cache(copied / "cache").objects() == objects
    assert {key: whole(copied, *key) for key in before if key not in (("first", 1), ("first", 2))} == {
        key: value for key, value in before.items() if key not in (("first", 1), ("first", 2))
    }
    coevo("gc", "--keep-last", 1, "--apply")
    assert Cache(copied / "cache").objects().keys() < objects.keys()


def test_objects_that_no_revision_names_go_without_any_rule(coevo, copied):
    stray = copied / "cache" / "files" / "md5" / "ab" / ("0" * 30)
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"x" * 5000)
    unfinished = copied / "runs" / ".gone.0123abcd"
    unfinished.mkdir()
    before = everything(copied)
    done = json.loads(coevo("gc", "--apply", "--json").out)
    assert done["freed"] > 5000
    assert [row["dropped"] for row in done["runs"]] == [[]] * 4
    assert not stray.exists()
    assert not unfinished.exists()
    assert everything(copied) == before


def test_what_is_kept_and_why(coevo, copied):
    coevo("tag", "first@1", "best")
    Cursor(copied / "runs/other/published.json").advance(1)
    rows = json.loads(coevo("gc", "--keep-every", 3, "--json").out)["runs"]
    why = {row["run"]: {kept["revision"]: kept["why"] for kept in row["kept"]} for row in rows}
    assert why["first"] == {0: ["reference policy", "every 3"], 1: ["tag best"], 3: ["last revision", "every 3"]}
    assert why["other"][2] == ["not published"]


def test_history_and_stories_stay_and_a_dropped_revision_is_refused_in_one_line(coevo, copied):
    log = json.loads(coevo("log", "first", "--json").out)
    coevo("gc", "--keep-last", 1, "--apply")
    assert json.loads(coevo("log", "first", "--json").out) == [row | {"kept": row["revision"] in (0, 3)} for row in log]
    said = "coevo: revision 1 of run 'first' was dropped by gc: kept ones are 0, 3\n"
    for command in (
        ("rollback", "first", "--to", 1),
        ("bank", "show", "first@1"),
        ("bank", "diff", "first@1", "first"),
        ("evaluate", "first@1"),
        ("branch", "first@1", "mine"),
        ("tag", "first@1", "mine"),
    ):
        result = coevo(*command)
        assert (result.code, result.out, result.err) == (2, "", said), command
    assert len(json.loads(coevo("log", "first", "--json").out)) == 4
    story = json.loads(coevo("bank", "why", "first", MUG.id, "--json").out)
    assert story["episodes_gone"] == [1, 2]
    assert {retrieval["revision"] for retrieval in story["retrievals"]} == {3}
    assert story["edits"] == [{"revision": 3, "before": None}]
    told = coevo("bank", "why", "first", MUG.id).out
    assert "gc dropped episodes of revisions 1, 2" in told
    assert "the earlier text was dropped by gc" in told


def test_a_run_in_use_is_named_and_nothing_changes(coevo, copied):
    before = everything(copied)
    with writer_lock(Workspace(copied).existing("other")):
        result = coevo("gc", "first", "--keep-last", 1, "--apply")
        assert coevo("gc", "first", "--keep-last", 1).code == 0
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "run 'other' is in use by process" in result.err
    assert everything(copied) == before
    history.tag_missing(Damaged(copied))  # as its writer may be about to make one
    with writer_lock(Workspace(copied).existing("first")):
        assert coevo("gc", "--keep-last", 1).code == 0


def test_a_kept_version_that_does_not_read_as_recorded_stops_it_before_anything_is_removed(refused, copied):
    data = sorted((copied / "runs/first/bank/entries.lance/data").iterdir())
    data[0].unlink()
    damaged = disk_usage(*exact(copied))
    assert "bank table entries" in refused("gc", "--keep-last", 1, "--apply")
    assert disk_usage(*exact(copied)) == damaged
    assert retained(copied, "first") == [0, 1, 2, 3]


UNTOLD = [
    (history.branch_moved_back, "has 2 revisions but the tags go up to r3: `coevo fsck --repair` moves it forward"),
    (history.branch_gone, "has 0 revisions but the tags go up to r3: `coevo fsck --repair` moves it forward"),
    (
        history.branch_empty,
        "refs/heads/main is empty: `coevo fsck --repair` takes its commit from the other references",
    ),
    (history.tag_empty, "refs/tags/r1 is empty: `coevo fsck --repair` takes its commit from the other references"),
    (history.head_detached, "HEAD is not on the branch main: `coevo fsck --repair` moves it back"),
    (history.tag_missing, "the tag r1 is missing: `coevo fsck --repair` creates it"),
    (history.kept_and_dropped, "it was dropped, and still has the tag r1: `coevo fsck --repair` removes the tag"),
    (history.branch_behind_its_tags_and_a_name, "has 2 revisions but the tags go up to r3"),
    (history.name_of_another_commit, "the tag best is on a commit that is not a revision of this history"),
    (stores.created_missing, "created is missing, so no command sees the run: write the tag coevo.origin"),
]
"""Damage of ``first`` that hides what it keeps, and what is said of it."""


@pytest.mark.parametrize(("harm", "says"), UNTOLD, ids=lambda value: getattr(value, "__name__", ""))
def test_a_run_that_does_not_say_what_it_keeps_stops_it_before_anything_is_removed(coevo, copied, harm, says):
    coevo("tag", "first@2", "good")
    harm(Damaged(copied))
    (copied / "runs" / ".gone.0123abcd").mkdir()
    before = fingerprint(copied)
    result = coevo("gc", "other", "--keep-last", 1, "--apply")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert says in result.err
    assert coevo("gc", "--keep-last", 1) == result
    left = fingerprint(copied)
    assert {name: left.get(name) for name in before} == before


def test_a_branch_that_was_mended_is_collected_and_tagged_revisions_stay(coevo, copied):
    before = everything(copied)
    coevo("tag", "first@2", "best")
    history.branch_moved_back(Damaged(copied))
    assert coevo("gc", "--keep-last", 1, "--apply").code == 2
    mend_branch(Repository(copied / "runs/first/lineage", copied / "cache"))
    assert coevo("gc", "--keep-last", 1, "--apply").code == 0
    assert retained(copied, "first") == [0, 2, 3]
    assert whole(copied, "first", 2) == before["first", 2]


def test_it_waits_for_a_commit_that_outlived_its_process(coevo, copied):
    killed = Damaged(copied)
    newest = killed.git("rev-parse", "r3")
    killed.git("update-ref", "refs/heads/main", "r2")
    killed.git("tag", "--delete", "r3")
    late = f"exec 9<.git/coevo.gate; flock --shared 9; echo held; sleep 2; git update-ref refs/heads/main {newest}"
    with subprocess.Popen(["bash", "-c", late], cwd=killed.lineage, stdout=subprocess.PIPE) as git:
        assert git.stdout.readline() == b"held\n"
        result = coevo("gc", "--keep-last", 1, "--apply")
        assert git.wait() == 0
    assert result.code == 2
    assert "the tag r3 is missing" in result.err
    assert Cache(copied / "cache").problem(killed.manifest(3).artifacts["policy"]) is None


def test_an_artifact_that_the_cache_lost_stops_it_before_anything_is_removed(refused, copied):
    with Lineage.open(copied / "runs/other/lineage", copied / "cache") as lineage:
        content = lineage.history.manifest(0).artifacts["policy"]
    Cache(copied / "cache").remove([content])
    assert f"object {content} is not readable" in refused("gc", "first", "--keep-last", 1, "--apply")
    assert retained(copied, "first") == [0, 1, 2, 3]


def test_so_does_a_file_of_a_kept_revision_that_the_cache_lost(refused, copied):
    lost = Damaged(copied).stored(3, "policy", "weights")
    lost.unlink()
    objects = Cache(copied / "cache").objects()
    result = refused("gc", "--keep-last", 1, "--apply")
    assert f"@3: object {lost.parent.name}{lost.name} is not in {copied / 'cache'}: see `coevo fsck`" in result
    assert [retained(copied, run) for run in RUNS] == [[0, 1, 2, 3]] * 3
    assert Cache(copied / "cache").objects() == objects


def test_what_the_cache_lost_of_a_revision_that_goes_stops_nothing(coevo, copied):
    stores.old_policy_missing(Damaged(copied))
    assert coevo("gc", "--keep-last", 1).code == 0
    assert coevo("gc", "--keep-last", 1, "--apply").code == 0
    assert retained(copied, "first") == [0, 3]


def test_a_workspace_without_runs_has_nothing_to_free_and_a_run_has_to_be_there(coevo, refused, copied, tmp_path):
    assert "No run 'nope'" in refused("gc", "nope", "--apply")
    assert json.loads(coevo("gc", "--json", "--workspace", tmp_path).out) == {"runs": [], "bytes": 0, "freed": None}


def test_a_run_goes_on_after_it(coevo, copied):
    coevo("gc", "--keep-last", 1, "--apply")
    workspace = Workspace(copied)
    assert recovered(copied, "first").revision == 3
    coevo("rollback", "first", "--to", 0)
    assert retained(copied, "first") == [0, 3, 4]
    assert whole(copied, "first", 4) == whole(copied, "first", 0)
    git = ["git", "fsck", "--strict"]
    assert (
        subprocess.run(git, cwd=workspace.existing("first").lineage, capture_output=True, check=False).returncode == 0
    )


def test_a_rule_counts_from_the_head():
    assert [RetentionRule(last=2).reasons(revision, 9) for revision in (7, 8)] == [[], ["last 2"]]
