"""Removing, opening what others write to, and writing what others may not read."""

import os
import stat

import pytest

from coevo.lineage.atomic_files import open_regular, remove, write_atomically
from coevo.lineage.objects.cache import Cache
from coevo.utilities.errors import CoevoError


@pytest.fixture
def root(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("precious")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.mark.parametrize("name", ["../outside", "../outside/precious", "/tmp", "way/precious", "a/..", "..", ""])
def test_nothing_outside_of_the_root_is_removed(root, name):
    (root / "way").symlink_to(root.parent / "outside")
    with pytest.raises(CoevoError, match=r"is outside of .*: it was not removed"):
        remove(root / name, root)
    assert (root.parent / "outside" / "precious").read_text() == "precious"


def test_of_a_link_the_link_is_removed(root):
    (root / "way").symlink_to(root.parent / "outside")
    remove(root / "way", root)
    assert list(root.iterdir()) == []
    assert (root.parent / "outside" / "precious").exists()


def test_files_directories_and_nothing_are_removed_through_a_linked_root(root):
    (root / "a" / "b").mkdir(parents=True)
    (root / "c").touch()
    linked = root.parent / "linked"
    linked.symlink_to(root)
    for name in ("a", "c", "none"):
        remove(linked / name, linked)
    assert list(root.iterdir()) == []


def test_only_regular_files_are_opened(root):
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to(root.parent / "outside" / "precious")
    for path in (root / "pipe", root / "link", root):
        with pytest.raises(CoevoError, match="is not a regular file"):
            open_regular(path)
    with open_regular(root.parent / "outside" / "precious") as file:
        assert file.read() == b"precious"


def test_a_private_file_is_never_readable_by_others(root, monkeypatch):
    modes = []
    monkeypatch.setattr(os, "fsync", lambda handle: modes.append(stat.S_IMODE(os.fstat(handle).st_mode)))
    (root / ".file.new").symlink_to(root.parent / "outside" / "precious")
    before = os.umask(0)
    try:
        for text in ("one\n", "two\n"):
            write_atomically(root / "file", text, private=True)
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]
    assert (root / "file").read_text() == "two\n"
    assert (root.parent / "outside" / "precious").read_text() == "precious"
    assert {path.name for path in root.iterdir()} == {"file", ".file.new"}


@pytest.mark.parametrize("content", ["../../../outside/precious", "", "/etc/passwd", "0" * 31, "0" * 32 + ".dirx"])
def test_an_object_has_the_path_of_a_content_hash_only(root, content):
    with pytest.raises(CoevoError, match="is not a content hash"):
        Cache(root).remove([content])
