"""A user whose run has a damaged file in its bank: what is still there can be read, and there is a way out."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from support.soak import mostly_soak

TABLE = "runs/first/bank/{}.lance"
NEWEST, OLD = (f"_versions/{2**64 - 1 - version}.manifest" for version in (3, 2))


@pytest.fixture(scope="module")
def tracking_uri(tmp_path_factory):
    """A database of this file's own: what other files publish would be found by ``fsck`` here."""
    return f"sqlite:///{tmp_path_factory.mktemp('tracking') / 'mlflow.db'}"


@pytest.fixture
def table(copied):
    """Tables of the run ``first`` by name; none of their files is a link to another one."""
    return lambda name="entries": copied / TABLE.format(name)


@pytest.fixture
def unpublished(copied, monkeypatch):
    """No MLflow answers: a rollback here is none in the database that the other tests share."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


def spoil(path):
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def folder(path):
    path.unlink()
    path.mkdir()


def rows(table, text):
    """The file of the table's data that holds a text, and what it holds."""
    found = ((path, path.read_bytes()) for path in sorted((table / "data").iterdir()) if path.is_file())
    return next((path, content) for path, content in found if text in content)


def child(*arguments, root):
    """A command in a process of its own, which has to end; without the lines of its steps."""
    line = [sys.executable, "-m", "coevo.flows", *map(str, arguments), "--workspace", str(root)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
    done.stderr = "".join(line for line in done.stderr.splitlines(keepends=True) if not line.endswith(" ...\n"))
    return done


def test_a_byte_that_changes_an_entry_is_not_shown_as_if_it_were_the_entry(refused, table):
    path, content = rows(table(), b"microwave")
    path.write_bytes(content.replace(b"microwave", b"microwavy"))
    result = refused("bank", "show", "first@1")
    assert result.startswith("coevo: run 'first', revision 1: bank table entries: version 2 has content ")


def test_a_damaged_newest_version_leaves_the_others_to_read_and_to_go_back_to(coevo, refused, table, unpublished):
    before = coevo("bank", "show", "first@1").out
    spoil(table() / NEWEST)
    assert coevo("bank", "show", "first@1").out == before
    result = refused("bank", "show", "first")
    assert result.startswith("coevo: run 'first', revision 3: bank table entries cannot be read: ")
    said = coevo("fsck", "first")
    assert "bank table entries version 3 of revision 3 cannot be read" in " ".join(said.out.split())
    assert coevo("rollback", "first", "--to", 1).code == 0
    assert coevo("bank", "show", "first").out == before


def test_the_damaged_rows_of_the_last_revision_do_not_keep_one_from_going_back(coevo, table, unpublished):
    before = coevo("bank", "show", "first@1").out
    path, content = rows(table(), b"drawer")
    path.write_bytes(content[:100])
    assert coevo("rollback", "first", "--to", 1).code == 0
    assert coevo("bank", "show", "first").out == before


@pytest.mark.parametrize("harm", [pipe, folder], ids=lambda harm: harm.__name__)
def test_a_transaction_that_is_no_file_is_no_loss(coevo, table, unpublished, harm):
    revisions = [f"first@{number}" for number in range(4)]
    before = [coevo("bank", "show", revision) for revision in revisions]
    for path in (table() / "_transactions").iterdir():
        harm(path)
    assert [coevo("bank", "show", revision) for revision in revisions] == before
    assert "bank table" not in coevo("fsck", "first").out
    assert coevo("rollback", "first", "--to", 1).code == 0
    assert coevo("bank", "show", "first").out == before[1].out


@pytest.mark.full
@pytest.mark.parametrize("file", mostly_soak([OLD, NEWEST, "data", "_versions/latest_version_hint.json"], "data"))
def test_a_pipe_in_place_of_a_file_keeps_nothing_waiting(copied, table, file):
    pipe(rows(table(), b"microwave")[0] if file == "data" else table() / file)
    for line in (("bank", "show", "first@1"), ("fsck", "first")):
        done = child(*line, root=copied)
        assert done.returncode in (0, 1, 2)
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") <= 1


@pytest.mark.full
def test_a_panic_of_lance_is_one_line(copied, table):
    path, content = rows(table(), b"microwave")
    for at in range(192, 204):
        path.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
        done = child("bank", "show", "first@1", root=copied)
        assert (done.returncode, done.stderr.count("\n")) in ((0, 0), (2, 1)), done.stderr
        if "panicked" in done.stderr:
            break
    else:
        pytest.fail("none of these bytes makes Lance panic")


@pytest.mark.full
def test_a_repair_takes_the_file_from_a_branch(coevo, copied, table):
    assert coevo("branch", "first@2", "twin").code == 0
    path = table() / OLD
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1])
    assert coevo("fsck", "first").code == 1
    assert coevo("fsck", "first", "--repair").code == 0
    assert path.read_bytes() == content


@pytest.mark.full
def test_a_repair_takes_the_file_from_a_remote_and_says_so_where_none_has_it(coevo, copied, table, tmp_path):
    assert coevo("push", tmp_path / "remote", "first").code == 0
    path, content = rows(table(), b"drawer")
    path.write_bytes(b"")
    before = sorted((copied / "runs/first/bank").rglob("*"))
    left = json.loads(coevo("fsck", "first", "--repair", "--json").out)["findings"]
    (finding,) = (one for one in left if "bank table" in one["problem"])
    assert finding["remedy"].startswith("no other copy is here: `coevo fsck --repair --from REMOTE` if it was pushed")
    assert finding["remedy"].endswith("the bank of revision 0 to 2 is whole: `coevo rollback first --to 2`")
    assert sorted((copied / "runs/first/bank").rglob("*")) == before
    assert path.read_bytes() == b""
    assert coevo("fsck", "first", "--from", tmp_path / "remote").code == 1
    assert path.read_bytes() == b""
    assert coevo("fsck", "first", "--repair", "--from", tmp_path / "remote").code == 0
    assert path.read_bytes() == content


def test_a_repair_takes_nothing_that_is_not_what_was_recorded(coevo, copied, table, tmp_path):
    path, content = rows(table(), b"microwave")
    path.write_bytes(content.replace(b"microwave", b"microwavy"))
    shutil.copytree(copied / "runs/first/bank", copied / "runs/liar/bank")
    path.write_bytes(b"")
    assert coevo("fsck", "first", "--repair").code == 1
    assert path.read_bytes() == b""


def test_a_repair_does_not_follow_a_folder_that_is_a_link(coevo, copied, table, tmp_path):
    assert coevo("branch", "first@2", "twin").code == 0
    path, _ = rows(table(), b"microwave")
    (table() / "data").rename(tmp_path / "elsewhere")
    (table() / "data").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / path.name).unlink()
    assert coevo("fsck", "first", "--repair").code == 1
    assert not (tmp_path / "elsewhere" / path.name).exists()
