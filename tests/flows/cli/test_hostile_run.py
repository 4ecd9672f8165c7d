"""A run in the workspace whose history names paths outside: nothing there is written or removed by any command."""

import json
import os
import shutil

import pytest
from support.damaged import Damaged
from support.fsck import fingerprint

from coevo.lineage.workspace import Workspace

PERSON = ("-c", "user.name=one", "-c", "user.email=one@localhost")


@pytest.fixture
def hostile(copied):
    """The copy of the workspace, with a directory beside it that a command must not touch."""
    outside = copied.parent / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    return Damaged(copied)


def commit(hostile):
    hostile.git("add", "--all", "--force", ".", ":!policy", ":!episodes", ":!held_out")
    hostile.git(*PERSON, "commit", "--quiet", "--message", "r4")
    hostile.git("tag", "r4")


def name_an_artifact(hostile, name):
    path = hostile.lineage / "manifest.json"
    manifest = json.loads(path.read_text())
    state = manifest["state"]
    state |= {"revision": 4, "parent": 3, "artifacts": {**state["artifacts"], name: state["artifacts"]["policy"]}}
    path.write_text(json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=False) + "\n")
    commit(hostile)


def pointer_through_a_link(hostile):
    (hostile.lineage / "way").symlink_to(hostile.root.parent / "outside")
    pointer = hostile.lineage / "policy.dvc"
    text = pointer.read_text().replace("path: policy", "path: way/precious")
    pointer.unlink()
    pointer.write_text(text)
    name_an_artifact(hostile, "policy")


@pytest.mark.parametrize("kind", ["absolute", "upwards", "link"])
def test_a_repair_removes_and_writes_nothing_outside(hostile, coevo, refused, kind):
    outside = hostile.root.parent / "outside"
    if kind == "link":
        pointer_through_a_link(hostile)
    else:
        name_an_artifact(hostile, str(outside) if kind == "absolute" else "../../../../outside")
    shutil.rmtree(hostile.lineage / "policy")
    before = fingerprint(outside)
    done = coevo("fsck", "first", "--repair", "--json")
    assert fingerprint(outside) == before
    assert done.code == 1
    told = [row["problem"] for row in json.loads(done.out)["findings"]]
    assert any("'state.artifacts." in text or "'way' with mode 120000" in text for text in told)
    for command in (
        ("rollback", "first", "--to", "4"),
        ("branch", "first@4", "new"),
        ("rollback", "first", "--to", "1"),
    ):
        refused(*command)
        assert fingerprint(outside) == before, command


def test_links_in_the_work_tree_are_not_followed(hostile, coevo):
    outside = hostile.root.parent / "outside"
    policy = hostile.lineage / "policy"
    shutil.rmtree(policy)
    policy.symlink_to(outside)
    (hostile.lineage / "episodes" / "more").symlink_to(outside)
    before = fingerprint(outside)
    assert coevo("rollback", "first", "--to", "1").code == 0
    assert fingerprint(outside) == before
    assert not policy.is_symlink()
    assert (policy / "weights").read_text() == "policy of 1"


@pytest.mark.full
def test_what_is_left_half_made_is_removed_without_what_it_links_to(hostile, coevo):
    outside = hostile.root.parent / "outside"
    (hostile.root / "runs" / ".first.0a1b2c3d").symlink_to(outside)
    (hostile.root / "cache" / "warmstarts").mkdir()
    (hostile.root / "cache" / "warmstarts" / "0123").symlink_to(outside)
    coevo("fsck", "--repair")
    assert (outside / "precious").read_text() == "precious"
    assert not os.path.lexists(hostile.root / "runs" / ".first.0a1b2c3d")
    assert not os.path.lexists(hostile.root / "cache" / "warmstarts" / "0123")
    assert Workspace(hostile.root).existing("first")
