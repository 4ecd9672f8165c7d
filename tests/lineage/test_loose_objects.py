"""Objects of a commit are read without git as git reads them; one that is packed, damaged or another is refused."""

import zlib

import pytest

from coevo.lineage.git import Git
from coevo.lineage.loose_objects import branch_commit, loose_object, named_in

MAIN = "refs/heads/main"


@pytest.fixture
def git(tmp_path):
    (tmp_path / "tree").mkdir()
    git = Git(tmp_path / "tree")
    git.init()
    for name, text in (("a", "first"), ("manifest.json", "{}\n"), ("manifest.json.dvc", "other")):
        (git.root / name).write_text(text)
    git("add", "--all")
    git("commit", "--quiet", "--message", "one")
    return git


def test_a_file_is_found_from_its_branch(git):
    place = git.root / ".git"
    commit = branch_commit(place, MAIN)
    assert commit == git("rev-parse", "HEAD").strip()
    header = loose_object(place, commit, "commit").decode()
    tree = loose_object(place, header.split()[1], "tree")
    for name, text in (("a", b"first"), ("manifest.json", b"{}\n")):
        assert loose_object(place, named_in(tree, name), "blob") == text
    with pytest.raises(ValueError, match="manifest"):
        named_in(tree, "manifest")


def test_what_is_packed_or_missing_has_no_file(git):
    place, commit = git.root / ".git", git("rev-parse", "HEAD").strip()
    git("repack", "-a", "-d", "-q")
    with pytest.raises(FileNotFoundError):
        loose_object(place, commit, "commit")
    git("pack-refs", "--all")
    with pytest.raises(FileNotFoundError):
        branch_commit(place, MAIN)


@pytest.mark.parametrize("stored", [b"no stream", zlib.compress(b"blob 1\0x"), zlib.compress(b"commit 9\0short")])
def test_an_object_that_is_damaged_or_another_is_refused(git, stored):
    place, commit = git.root / ".git", git("rev-parse", "HEAD").strip()
    with pytest.raises(ValueError, match="not the tree"):
        loose_object(place, commit, "tree")
    file = place / "objects" / commit[:2] / commit[2:]
    file.chmod(0o600)
    file.write_bytes(stored)
    with pytest.raises(ValueError, match=commit[2:]):
        loose_object(place, commit, "commit")


@pytest.mark.parametrize("name", ["ref: refs/heads/other", "../../../etc/passwd", "ABCD" * 10, ""])
def test_a_name_leads_nowhere_else(git, name):
    (git.root / ".git" / MAIN).write_text(f"{name}\n")
    with pytest.raises(ValueError, match="not the name of an object"):
        branch_commit(git.root / ".git", MAIN)
    with pytest.raises(ValueError, match="not the name of an object"):
        loose_object(git.root / ".git", name, "blob")
