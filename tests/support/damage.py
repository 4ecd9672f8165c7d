"""Kinds of damage that ``coevo fsck`` must name: each is a function of the run ``first`` in a copy of a workspace."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from support import small_run

from lineage.cache import Cache
from lineage.lineage import Lineage
from lineage.workspace import Workspace
from memory.change import BankChange
from memory.store import Bank
from tasks.tracking.store import client, tracking_store


@dataclass(frozen=True)
class Damaged:
    """The run that is damaged, in a copy of the workspace."""

    root: Path

    @property
    def place(self):
        return Workspace(self.root)

    @property
    def run(self):
        return self.place.existing("first")

    @property
    def lineage(self):
        return self.run.lineage

    def git(self, *arguments):
        done = subprocess.run(["git", *arguments], cwd=self.lineage, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def manifest(self, revision):
        with Lineage.open(self.lineage, self.place.cache) as lineage:
            return lineage.manifest(revision)

    def stored(self, revision, artifact, file=None):
        """The cached object of an artifact's listing, or of a file in it."""
        content, cache = self.manifest(revision).artifacts[artifact], Cache(self.place.cache)
        return cache.path(content if file is None else cache.files(content)[file])

    def object(self, name):
        sha = self.git("rev-parse", name)
        return self.lineage / ".git" / "objects" / sha[:2] / sha[2:]

    def table(self, name, version):
        return self.run.bank / f"{name}.lance" / "_versions" / f"{2**64 - 1 - version}.manifest"


def spoil(path):
    """Other content of the same size."""
    path.chmod(0o644)
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))


def points(damaged):
    mlflow = client(tracking_store(damaged.root))
    (run,) = mlflow.search_runs([e.experiment_id for e in mlflow.search_experiments()])
    return mlflow, run.info.run_id


def index_lock(it):
    (it.lineage / ".git" / "index.lock").touch()


def ref_lock(it):
    (it.lineage / ".git" / "refs" / "heads" / "main.lock").touch()


def dvc_lock(it):
    table = {"write": {f"{it.lineage}/policy": {"pid": os.getppid(), "cmd": "dvc add"}}, "read": {}}
    (it.lineage / ".dvc" / "tmp").mkdir(exist_ok=True)
    (it.lineage / ".dvc" / "tmp" / "rwlock").write_text(json.dumps(table))


def staged(it):
    (it.run.staging / "policy").mkdir()
    (it.run.staging / "policy" / "weights").write_text("half")


def half_written(it):
    (it.run.root / ".config.json.new").write_text("{")


def manifest_in_the_tree(it):
    (it.lineage / "manifest.json").write_text("half")


def stranger_in_the_tree(it):
    (it.lineage / "stranger").write_text("x")


def policy_in_the_tree(it):
    spoil(it.lineage / "policy" / "weights")


def policy_gone_from_the_tree(it):
    shutil.rmtree(it.lineage / "policy")


def tag_missing(it):
    it.git("tag", "--delete", "r1")


def tag_elsewhere(it):
    it.git("tag", "--force", "r1", "r0")


def tag_of_another_commit(it):
    it.git("tag", "r9", "r0")


def kept_and_dropped(it):
    it.git("update-ref", "refs/dropped/r1", "r1")


def dropped_mark_elsewhere(it):
    it.git("update-ref", "refs/dropped/r1", "r0")
    it.git("tag", "--delete", "r1")


def dropped_mark_elsewhere_beside_the_tag(it):
    it.git("update-ref", "refs/dropped/r1", "r0")


def dropped_mark_of_another_commit(it):
    it.git("update-ref", "refs/dropped/r9", "r0")


def name_of_another_commit(it):
    it.git("update-ref", "refs/tags/best", off_the_line(it))


def off_the_line(it):
    """A commit that goes on from revision 1, and is not revision 2."""
    person = ("-c", "user.name=one", "-c", "user.email=one@localhost")
    return it.git(*person, "commit-tree", "r2^{tree}", "-p", "r1", "-m", "another")


def branch_behind_a_name(it):
    it.git("update-ref", "refs/tags/best", "r2")
    branch_moved_back(it)
    it.git("tag", "--delete", "r2", "r3")


def branch_behind_its_tags_and_a_name(it):
    it.git("update-ref", "refs/tags/best", "r3")
    it.git("update-ref", "refs/tags/astray", off_the_line(it))
    branch_moved_back(it)
    it.git("tag", "--delete", "r3")


def head_detached(it):
    it.git("checkout", "--quiet", "--detach")


def branch_moved_back(it):
    it.git("update-ref", "refs/heads/main", "r1")


def branch_gone(it):
    it.git("update-ref", "-d", "refs/heads/main")


def branch_empty(it):
    (it.lineage / ".git" / "refs" / "heads" / "main").write_bytes(b"")


def tag_empty(it):
    (it.lineage / ".git" / "refs" / "tags" / "r1").write_bytes(b"")


def newest_tag_full_of_zeros(it):
    (it.lineage / ".git" / "refs" / "tags" / "r3").write_bytes(b"\0" * 41)


def named_tag_empty(it):
    (it.lineage / ".git" / "refs" / "tags" / "best").write_bytes(b"")


def branch_and_newest_tag_empty(it):
    branch_empty(it)
    (it.lineage / ".git" / "refs" / "tags" / "r3").write_bytes(b"")


def all_references_empty(it):
    for ref in (it.lineage / ".git" / "refs").rglob("*"):
        if ref.is_file():
            ref.write_bytes(b"")


def newest_manifest_object(it):
    it.object("r3:manifest.json").unlink()


def newest_manifest_object_corrupt(it):
    spoil(it.object("r3:manifest.json"))


def old_manifest_object(it):
    it.object("r1:manifest.json").unlink()


def newest_policy_missing(it):
    it.stored(3, "policy", "weights").unlink()


def newest_policy_corrupt(it):
    spoil(it.stored(3, "policy", "weights"))


def newest_listing_missing(it):
    it.stored(3, "policy").unlink()


def newest_listing_corrupt(it):
    spoil(it.stored(3, "policy"))


def old_policy_missing(it):
    it.stored(1, "policy", "weights").unlink()


def policy_corrupt_in_cache_and_tree(it):
    stored, shown = it.stored(3, "policy", "weights"), it.lineage / "policy" / "weights"
    shown.unlink()
    os.link(stored, shown)
    spoil(stored)
    (it.root / "runs/other/lineage/policy/weights").unlink()


def policy_corrupt_but_in_another_run(it):
    stored, shown = it.stored(3, "policy", "weights"), it.lineage / "policy" / "weights"
    shown.unlink()
    os.link(stored, shown)
    spoil(stored)


def newest_policy_missing_everywhere(it):
    newest_policy_missing(it)
    for run in ("first", "other"):
        (it.root / f"runs/{run}/lineage/policy/weights").unlink()


def bank_ahead(it):
    Bank(it.run.bank).merge(BankChange(entries=(small_run.REJECTED,)))


def table_version_gone(it):
    it.table("entries", 2).unlink()


def newest_table_version_corrupt(it):
    spoil(it.table("stats", 3))


def newest_rows_truncated(it):
    newest = max((it.run.bank / "stats.lance" / "data").iterdir(), key=lambda path: path.stat().st_mtime)
    newest.write_bytes(newest.read_bytes()[:100])


def cursor_ahead(it):
    it.run.published.write_text('{"published": 7}')


def cursor_unreadable(it):
    it.run.published.write_text('{"publ')


def cursor_empty(it):
    it.run.published.write_text("")


def cursor_of_no_number(it):
    it.run.published.write_text('{"published": 1e400}')


def cursor_below(it):
    it.run.published.write_text('{"published": -3}')


def database_gone(it):
    (it.root / "mlflow.db").unlink()


def cursor_beyond_mlflow(it):
    it.run.published.write_text('{"published": 3}')


def points_twice(it):
    mlflow, run = points(it)
    mlflow.log_metric(run, "success/train", 0.75, timestamp=5, step=1)


def points_beyond_the_head(it):
    mlflow, run = points(it)
    mlflow.log_metric(run, "success/train", 0.75, timestamp=5, step=8)


def commit_tag(it):
    mlflow, run = points(it)
    mlflow.set_tag(run, "coevo.commit", "0" * 40)


def config_unreadable(it):
    it.run.config.write_text('{"recipe": ')


def created_unreadable(it):
    it.run.created.write_text("yesterday")


def created_missing(it):
    it.run.created.unlink()


def half_made_run(it):
    fresh = it.root / "runs" / ".second.0a1b2c3d"
    fresh.mkdir()
    (fresh / "created").write_text("1")


def file_among_runs(it):
    (it.root / "runs" / "notes.txt~").write_text("x")


def nested_run(it):
    shutil.copytree(it.root / "runs" / "other", it.run.root / "other")


def warm_start_spoilt(it):
    policy = it.place.warmstarts / "0123"
    policy.mkdir(parents=True)
    (policy / "weights").write_text("half")
    policy.with_suffix(".sha256").write_text("0" * 64)


def warm_start_without_its_hash(it):
    (it.place.warmstarts / "0123").mkdir(parents=True)


def lineage_gone(it):
    shutil.rmtree(it.lineage / ".git")


MENDED, LOST = True, False
IN_ONE_PLACE = [
    (index_lock, "first", "left the lock lineage/.git/index.lock", MENDED),
    (ref_lock, "first", "left the lock lineage/.git/refs/heads/main.lock", MENDED),
    (dvc_lock, "first", "left the lock lineage/.dvc/tmp/rwlock", MENDED),
    (staged, "first", "left staging/policy", MENDED),
    (half_written, "first", "left .config.json.new", MENDED),
    (manifest_in_the_tree, "first", "lineage/manifest.json differs from the last revision", MENDED),
    (stranger_in_the_tree, "first", "lineage/stranger belongs to no revision", MENDED),
    (policy_in_the_tree, "first", "lineage/policy differs from the last revision", MENDED),
    (policy_gone_from_the_tree, "first", "lineage/policy differs from the last revision", MENDED),
    (tag_missing, "first@1", "the tag r1 is missing", MENDED),
    (tag_elsewhere, "first@1", "the tag r1 is on another commit", MENDED),
    (tag_of_another_commit, "first", "the tag r9 is not on this history", LOST),
    (kept_and_dropped, "first@1", "it was dropped, and still has the tag r1", MENDED),
    (dropped_mark_elsewhere, "first@1", "it was dropped, but refs/dropped/r1 is on another commit", MENDED),
    (dropped_mark_of_another_commit, "first", "the mark refs/dropped/r9 is not on this history", LOST),
    (name_of_another_commit, "first", "the tag best is on a commit that is no revision of this history", LOST),
    (head_detached, "first", "HEAD is not on the branch main", MENDED),
    (branch_empty, "first", "the reference refs/heads/main is empty", MENDED),
    (tag_empty, "first", "the reference refs/tags/r1 is empty", MENDED),
    (newest_tag_full_of_zeros, "first", "the reference refs/tags/r3 is empty", MENDED),
    (named_tag_empty, "first", "the reference refs/tags/best is empty", LOST),
    (newest_manifest_object, "first", "is missing or corrupt", MENDED),
    (newest_manifest_object_corrupt, "first", "is missing or corrupt", MENDED),
    (old_manifest_object, "first", "is missing or corrupt", LOST),
    (newest_policy_missing, "first@3", "policy/weights of revision 3 is missing in the cache", MENDED),
    (newest_policy_corrupt, "first@3", "policy/weights of revision 3 is corrupt in the cache", MENDED),
    (newest_listing_missing, "first@3", "policy of revision 3 is missing in the cache", MENDED),
    (newest_listing_corrupt, "first@3", "policy of revision 3 is corrupt in the cache", MENDED),
    (policy_corrupt_but_in_another_run, "first@3", "policy/weights of revision 3 is corrupt", MENDED),
    (bank_ahead, "first@3", "bank table entries (latest) has content", MENDED),
    (table_version_gone, "first@1", "bank table entries version 2 of revision 1, 2 cannot be read", LOST),
    (newest_rows_truncated, "first@3", "bank table stats version 3 of revision 3 cannot be read", LOST),
    (cursor_ahead, "first", "published.json says revision 7, but its last is 3", MENDED),
    (cursor_unreadable, "first", "published.json is damaged", MENDED),
    (cursor_empty, "first", "published.json is damaged", MENDED),
    (cursor_of_no_number, "first", "published.json is damaged", MENDED),
    (cursor_below, "first", "published.json is damaged", MENDED),
    (database_gone, "first", "does not know the run", MENDED),
    (points_twice, "first@1", "MLflow has other points than the manifest: success/train", LOST),
    (points_beyond_the_head, "first", "MLflow has points of revision 8, but the last is 3", LOST),
    (commit_tag, "first@2", "the tag coevo.commit in MLflow names another commit", MENDED),
    (config_unreadable, "first", "config.json cannot be read", MENDED),
    (half_made_run, "runs/.second.0a1b2c3d", "left a run half made", MENDED),
    (file_among_runs, "runs/notes.txt~", "it is no run", LOST),
    (nested_run, "runs/first/other", "a run lies in another run", LOST),
    (warm_start_spoilt, "cache/warmstarts/0123", "is not what was made", MENDED),
    (warm_start_without_its_hash, "cache/warmstarts/0123", "is not what was made", MENDED),
]
"""The damage, whose finding it is, what that says, and whether a repair mends it."""
IN_SEVERAL = [
    (branch_moved_back, "the branch main has 2 revisions but the tags go up to r3", MENDED),
    (branch_behind_a_name, "the branch main has 2 revisions but the tags go up to r2", MENDED),
    (dropped_mark_elsewhere_beside_the_tag, "refs/dropped/r1 is on another commit", MENDED),
    (branch_gone, "the branch main has 0 revisions but the tags go up to r3", MENDED),
    (branch_and_newest_tag_empty, "the reference refs/tags/r3 is empty", LOST),
    (all_references_empty, "the reference refs/heads/main is empty", LOST),
    (cursor_beyond_mlflow, "MLflow lacks", MENDED),
    (newest_table_version_corrupt, "bank table stats (latest) cannot be opened", LOST),
    (created_unreadable, "created is not a number", LOST),
    (created_missing, "created is missing, so no command sees the run", LOST),
    (lineage_gone, "not a lineage, or a damaged one", LOST),
    (old_policy_missing, "policy/weights of revision 1 is missing in the cache", LOST),
    (policy_corrupt_in_cache_and_tree, "policy/weights of revision 3 is corrupt in the cache", LOST),
    (newest_policy_missing_everywhere, "policy/weights of revision 3 is missing in the cache", LOST),
]
"""The same for damage with more findings than the one that is named here, which is of ``first``."""
