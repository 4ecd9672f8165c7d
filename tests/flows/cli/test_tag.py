"""Names of revisions on the command line."""

import json

from support.damaged import Damaged
from support.damaged_history import name_of_another_commit

from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace


def tags(coevo, run="first"):
    return {row["revision"]: row["tags"] for row in json.loads(coevo("log", run, "--json").out) if row["tags"]}


def test_a_tag_is_shown_in_the_log_until_it_is_deleted(coevo, copied):
    assert coevo("tag", "first@2", "best").out == "Tagged first@2 as best.\n"
    coevo("tag", "first", "last")
    assert tags(coevo) == {2: ["best"], 3: ["last"]}
    assert "best" in coevo("log", "first").out.splitlines()[3]
    assert coevo("tag", "first", "best", "--delete").out == "Removed tag best from first@2.\n"
    assert tags(coevo) == {3: ["last"]}


def test_a_tagged_revision_is_read_by_its_tag(coevo, copied):
    coevo("tag", "first@2", "best")
    for command in (("log",), ("bank", "show"), ("bank", "log")):
        assert coevo(*command, "first@best", "--json") == coevo(*command, "first@2", "--json")
    assert coevo("tag", "first@best", "also").out == "Tagged first@2 as also.\n"
    assert coevo("bank", "diff", "first@0", "first@best").code == 0
    assert coevo("branch", "first@best", "mine").code == 0
    assert json.loads(coevo("log", "mine", "--json").out)[-1]["revision"] == 3
    assert coevo("tag", "first@best", "best", "--delete").code == 0


def test_a_tag_beside_the_history_can_be_deleted(coevo, copied):
    name_of_another_commit(Damaged(copied))
    assert tags(coevo) == {}
    assert coevo("tag", "first", "best", "--delete").out == "Removed tag best from first.\n"
    assert coevo("gc", "--keep-last", 1, "--apply").code == 0


MISTAKES = (
    (("first@2", "good"), "tag 'good' is taken"),
    (("first@2", "Good"), "tag 'Good' is 'good' for file systems that ignore case"),
    (("first@1", "GOOD"), "tag 'GOOD' is 'good' for file systems that ignore case"),
    (("first@2", "r7"), "cannot be a tag"),
    (("first@2", "R7"), "cannot be a tag"),
    (("first@2", "12"), "cannot be a tag"),
    (("first@bad", "x"), "tag 'bad' is not in run 'first': it has good"),
    (("first@2", "a b"), "cannot be a tag"),
    (("first@9", "x"), "it has 0 to 3"),
    (("nope", "x"), "No run 'nope'"),
    (("new", "x"), "no revision yet"),
    (("first", "x", "--delete"), "it has good"),
    (("first@2", "good", "--delete"), "tag 'good' is on revision 1, not 2"),
    (("first", "r1", "--delete"), "tag 'r1' is not in"),
)


def test_a_mistake_is_one_line_and_changes_nothing(coevo, refused, copied):
    with writer_lock(Workspace(copied).existing("first")):  # a run in use can be tagged
        assert coevo("tag", "first@1", "good").code == 0
    for arguments, says in MISTAKES:
        assert says in refused("tag", *arguments), arguments
    assert tags(coevo) == {1: ["good"]}
