"""Lists of files."""

import json

import pytest

from coevo.lineage.objects.content import check, files_of, md5, read_list, write_list
from coevo.utilities.errors import CoevoError


def test_a_list_is_what_dvc_makes_of_the_directory(tmp_path):
    from dvc_data.hashfile.hash_info import HashInfo
    from dvc_data.hashfile.tree import Tree

    folder = tmp_path / "bank"
    for name in ("b/ü.txt", "a", "b/a"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    files = files_of(folder)
    tree = Tree()
    for name, content in files.items():
        tree.add(tuple(name.split("/")), None, HashInfo("md5", content))
    tree.digest()
    assert write_list(files, tmp_path / "list") == tree.oid
    assert read_list(tmp_path / "list") == files


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up"])
def test_a_list_cannot_name_files_elsewhere(tmp_path, name):
    (tmp_path / "list").write_text(json.dumps([{"md5": "0" * 32, "relpath": name}]))
    with pytest.raises(CoevoError, match="outside of its directory"):
        read_list(tmp_path / "list")


def test_a_file_is_checked_by_its_content(tmp_path):
    (tmp_path / "file").write_text("content")
    check(tmp_path / "file", md5(tmp_path / "file"))
    with pytest.raises(CoevoError, match="does not match its name"):
        check(tmp_path / "file", "0" * 32)
    with pytest.raises(CoevoError, match="is missing"):
        check(tmp_path / "gone", "0" * 32)
