"""A workspace on a file system that lacks what runs need: one line before the first iteration, and in ``doctor``."""

import errno
import fcntl
import json
import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest
from support.small_run import MUG

from coevo.lineage.atomic_files import (
    LINKS,
    LOCKS,
    MODES,
    OF_BANKS,
    RECORD_LOCKS,
    RENAMES,
    SYNC,
    check_file_system,
    lacking,
)
from coevo.tasks.publish.reporter import Silent
from coevo.tasks.run.open_run import open_session
from coevo.utilities.errors import CoevoError

LACKING = {
    "exFAT": (os, "link", errno.EPERM, LINKS),
    "FUSE without links": (os, "link", errno.ENOSYS, LINKS),
    "SMB without links": (os, "link", errno.EOPNOTSUPP, LINKS),
    "a container volume": (os, "link", errno.EMLINK, LINKS),
    "a volume of two disks": (os, "link", errno.EXDEV, LINKS),
    "a guest that may not link": (os, "link", errno.EACCES, LINKS),
    "Lustre without -o flock": (fcntl, "flock", errno.ENOSYS, LOCKS),
    "NFS without lockd": (fcntl, "flock", errno.ENOLCK, LOCKS),
    "FUSE without locks": (fcntl, "flock", errno.EOPNOTSUPP, LOCKS),
    "9p": (fcntl, "flock", errno.EINVAL, LOCKS),
    "Lustre with -o localflock": (fcntl, "lockf", errno.ENOSYS, RECORD_LOCKS),
    "NFS with local_lock=flock": (fcntl, "lockf", errno.ENOLCK, RECORD_LOCKS),
    "SMB without modes": (os, "chmod", 0, MODES),
    "a drive of Windows in WSL": (os, "chmod", errno.EPERM, MODES),
    "FUSE without modes": (os, "chmod", errno.ENOSYS, MODES),
    "FUSE without fsync": (os, "fsync", errno.EINVAL, SYNC),
    "a bucket that is mounted": (os, "replace", errno.ENOSYS, RENAMES),
    "SMB whose server keeps what is there": (os, "replace", errno.EEXIST, RENAMES),
}
"""Calls that fail, with the error, and what the message says; without an error, a call has no effect."""


@contextmanager
def on(kind):
    """Let every file be on such a file system."""
    module, name, number, _ = LACKING[kind]

    def fail(*_, **__):
        if number:
            raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, fail)
        mask = os.umask(0o022)
        yield
        os.umask(mask)


@pytest.mark.parametrize("kind", LACKING)
def test_what_is_lacking_is_named_with_the_remedy(tmp_path, kind):
    with on(kind), pytest.raises(CoevoError) as caught:
        check_file_system(tmp_path)
    missing = LACKING[kind][3]
    assert str(caught.value).startswith(f"{tmp_path}: its file system has no {missing}, which runs need: ")
    assert str(caught.value).endswith("name a directory on another one (ext4, XFS, APFS) with --workspace")
    assert ("mount it with them" in str(caught.value)) == (missing in (LOCKS, RECORD_LOCKS))
    assert list(tmp_path.iterdir()) == []


def test_this_file_system_lacks_nothing(tmp_path):
    check_file_system(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_is_no_lack(tmp_path, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(OSError, match=os.strerror(number)):
        check_file_system(tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("kind", LACKING)
def test_a_run_is_refused_before_its_first_iteration(coevo, copied, tmp_path, kind):
    missing = LACKING[kind][3]
    with on(kind):
        begun = coevo("run", "homerules-coevo-rl", "iterations=1", "--workspace", tmp_path / "fresh")
        assert (begun.code, begun.err.count("\n")) == (2, 1), begun.err
        assert f"its file system has no {missing}, which runs need" in begun.err
        assert not list((tmp_path / "fresh").glob("runs/*"))
        with pytest.raises(CoevoError, match="which runs need"), open_session("first", copied, Silent(), False):
            pass
        rows = json.loads(coevo("doctor", "--json", "--workspace", tmp_path).out)
        (row,) = (row for row in rows if row["check"] == "file system")
        assert (row["status"], missing in row["found"], "--workspace" in row["remedy"]) == ("problem", True, True)


CHANGES = (("rollback", "first", "--to", "1"), ("bank", "retire", "first", MUG.id, "--reason", "old"))


@pytest.mark.full
@pytest.mark.parametrize("kind", LACKING)
@pytest.mark.parametrize("command", CHANGES, ids=lambda command: command[0])
def test_a_command_that_changes_a_run_is_refused_before_it_changes_anything(coevo, copied, kind, command):
    before = coevo("log", "first").out
    with on(kind):
        done = coevo(*command)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert f"has no {LACKING[kind][3]}" in done.err or "lacks locks" in done.err
    assert coevo("log", "first").out == before


def test_a_bank_alone_needs_links_and_locks(tmp_path):
    for kind, (_, _, _, missing) in LACKING.items():
        with on(kind):
            assert lacking(tmp_path, OF_BANKS) == (missing if missing in OF_BANKS else None), kind


@pytest.mark.full
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
@pytest.mark.parametrize("command", [("log", "first"), ("fsck",), ("gc",), ("branch", "first@1", "mine")])
def test_a_run_that_was_copied_there_gets_one_line_from_every_command(coevo, copied, monkeypatch, number, command):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    done = coevo(*command)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert "lacks locks" in done.err or "has no file locks" in done.err


@pytest.mark.full
def test_exfat(coevo, copied, tmp_path):
    """A real one, where this machine can mount it."""
    if os.getuid() or not all(map(shutil.which, ("mkfs.exfat", "mount.exfat-fuse", "losetup"))):
        pytest.skip("needs root, exfatprogs and exfat-fuse")
    with (tmp_path / "image").open("wb") as image:
        image.truncate(64 * 2**20)
    losetup = ["losetup", "--find", "--show", str(tmp_path / "image")]
    device = subprocess.run(losetup, capture_output=True, text=True, check=True).stdout.strip()
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    try:
        subprocess.run(["mkfs.exfat", device], capture_output=True, check=True)
        subprocess.run(["mount.exfat-fuse", device, mounted], capture_output=True, check=True)
        done = coevo("run", "homerules-coevo-rl", "iterations=1", "--workspace", mounted)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert f"{mounted}: its file system has no hard links, which runs need" in done.err
        assert coevo("doctor", "--workspace", mounted).code == 1
    finally:
        subprocess.run(["umount", mounted], check=False)
        subprocess.run(["losetup", "--detach", device], check=False)
