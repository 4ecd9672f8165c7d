"""Damage to the history of the run ``first``: its locks, work tree, tags, branch and git objects."""

import json
import os
import shutil

from support.damaged import LOST, MENDED, spoil


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
    """A commit that continues from revision 1, and is not revision 2."""
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


def lineage_gone(it):
    shutil.rmtree(it.lineage / ".git")


KILLED = [
    (index_lock, "first", "left the lock lineage/.git/index.lock", MENDED),
    (ref_lock, "first", "left the lock lineage/.git/refs/heads/main.lock", MENDED),
    (dvc_lock, "first", "left the lock lineage/.dvc/tmp/rwlock", MENDED),
    (staged, "first", "left staging/policy", MENDED),
    (half_written, "first", "left .config.json.new", MENDED),
]
WORK_TREE = [
    (head_detached, "first", "HEAD is not on the branch main", MENDED),
    (kept_and_dropped, "first@1", "it was dropped, and still has the tag r1", MENDED),
    (manifest_in_the_tree, "first", "lineage/manifest.json differs from the last revision", MENDED),
    (stranger_in_the_tree, "first", "lineage/stranger belongs to no revision", MENDED),
    (policy_in_the_tree, "first", "lineage/policy differs from the last revision", MENDED),
]
TAGS = [
    (name_of_another_commit, "first", "the tag best is on a commit that is not a revision of this history", LOST),
    (tag_missing, "first@1", "the tag r1 is missing", MENDED),
    (tag_of_another_commit, "first", "the tag r9 is not on this history", LOST),
    (policy_gone_from_the_tree, "first", "lineage/policy differs from the last revision", MENDED),
]
MARKS = [
    (dropped_mark_elsewhere, "first@1", "it was dropped, but refs/dropped/r1 is on another commit", MENDED),
    (dropped_mark_of_another_commit, "first", "the mark refs/dropped/r9 is not on this history", LOST),
]
TAG_ELSEWHERE = [(tag_elsewhere, "first@1", "the tag r1 is on another commit", MENDED)]
EMPTY_BRANCH = [
    (branch_empty, "first", "the reference refs/heads/main is empty", MENDED),
    (tag_empty, "first", "the reference refs/tags/r1 is empty", MENDED),
]
EMPTY_TAGS = [
    (newest_tag_full_of_zeros, "first", "the reference refs/tags/r3 is empty", MENDED),
    (named_tag_empty, "first", "the reference refs/tags/best is empty", LOST),
]
OBJECT_CORRUPT = [(newest_manifest_object_corrupt, "first", "is missing or corrupt", MENDED)]
OBJECT_MISSING = [
    (newest_manifest_object, "first", "is missing or corrupt", MENDED),
    (old_manifest_object, "first", "is missing or corrupt", LOST),
]
TOGETHER = (KILLED, WORK_TREE, TAGS, MARKS, TAG_ELSEWHERE, EMPTY_BRANCH, EMPTY_TAGS, OBJECT_CORRUPT, OBJECT_MISSING)
"""Damage that is made at once: whose finding each is, what that says, and whether a repair mends it."""
IN_SEVERAL = [
    (branch_moved_back, "the branch main has 2 revisions but the tags go up to r3", MENDED),
    (branch_behind_a_name, "the branch main has 2 revisions but the tags go up to r2", MENDED),
    (dropped_mark_elsewhere_beside_the_tag, "refs/dropped/r1 is on another commit", MENDED),
    (branch_gone, "the branch main has 0 revisions but the tags go up to r3", MENDED),
    (branch_and_newest_tag_empty, "the reference refs/tags/r3 is empty", LOST),
    (all_references_empty, "the reference refs/heads/main is empty", LOST),
    (lineage_gone, "not a lineage, or a damaged one", LOST),
]
"""The same for damage with more findings than the one that is named here, which is of ``first``."""
