"""Replacing a small file of a remote."""

import pytest
from filelock import FileLock

from coevo.lineage.remote import local_remote
from coevo.lineage.remote.local_remote import LocalStore
from coevo.lineage.remote.remote_store import Overtaken
from coevo.utilities.errors import CoevoError


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path)


def test_a_file_is_replaced_only_if_it_is_the_one_that_was_read(store):
    store.write(b"old", None, "runs", "first", "lineage.bundle")
    held = store.read("runs", "first", "lineage.bundle")
    store.write(b"of another", held, "runs", "first", "lineage.bundle")
    for seen in (held, None):
        with pytest.raises(Overtaken):
            store.write(b"mine", seen, "runs", "first", "lineage.bundle")
    assert store.read("runs", "first", "lineage.bundle").content == b"of another"


def test_a_lock_that_is_never_released_is_named(store, tmp_path, monkeypatch):
    monkeypatch.setattr(local_remote, "LOCK_TIMEOUT_S", 0.2)
    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(CoevoError, match=r"another process has held .*/\.lock for 0\.2 s"),
    ):
        store.write(b"new", None, "coevo.json")
    assert store.read("coevo.json") is None


def test_its_own_files_are_not_named(store):
    store.write(b"old", None, "coevo.json")
    assert store.names() == ["coevo.json"]
    assert store.names("runs") == []
