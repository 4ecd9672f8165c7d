"""``coevo pull`` from a remote that somebody hostile owns: one line, and nothing is changed."""

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest
from support import attacks, attacks_on_lists
from support.forged import BUNDLE, Bucket, Directory, Forged
from support.fsck import fingerprint
from support.remotes import advance, content, copy_run
from support.runs import states
from support.s3_server import BUCKET, Server

from coevo.lineage.objects.content import LIMIT, md5
from coevo.lineage.remote.push import push
from coevo.lineage.remote.remote_address import to_push
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank

OWN = {"runs.lock", "cache/lock", "runs/first/lock", "runs/first/lock.pid", "runs/.first.lock"}
"""Files that locks leave."""
CASES = [pytest.param(*case, id=name) for name, case in attacks.HISTORY.items()]
LISTS = [pytest.param(attack, said, id=name) for name, attack, said in attacks_on_lists.LISTS]


@pytest.fixture(scope="module")
def scene(small_workspace, tmp_path_factory):
    """A pushed run, and a workspace with an older copy of it, which no attack may change."""
    root = tmp_path_factory.mktemp("scene")
    (root / "outside").mkdir()
    (root / "outside" / "precious").write_text("precious")
    copy_run(small_workspace, root / "old")
    advance(copy_run(root / "old", root / "source"), "lotus a")
    run, store = Workspace(root / "source").existing("first"), to_push(str(root / "remote"))
    push(run, root / "source" / "cache", store, Bank, Mock())
    return root


@pytest.fixture
def remote(scene, tmp_path):
    shutil.copytree(scene / "remote", tmp_path / "remote")
    return Directory(tmp_path / "remote")


@pytest.fixture(scope="module")
def bucket(scene, tmp_path_factory):
    """The same remote in S3; only its bundle is ever overwritten."""
    server = Server(tmp_path_factory.mktemp("s3"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        found = Bucket(server, BUCKET, "team/coevo")
        for path in (path for path in (scene / "remote").rglob("*") if path.is_file()):
            found.write(path.relative_to(scene / "remote").as_posix(), path.read_bytes())
        yield found
    server.stop()


@pytest.fixture
def refused(coevo, scene, tmp_path):
    """Pull into the older copy and into a new workspace; the line that both get."""

    def run(remote):
        lines = [_pull(coevo, remote, directory, scene) for directory in (scene / "old", tmp_path / "new")]
        assert not [path for path in (tmp_path / "new" / "runs").iterdir() if path.is_dir()]
        return lines[0]

    return run


def _pull(coevo, remote, directory, scene):
    before, outside = fingerprint(directory), fingerprint(scene / "outside")
    done = coevo("pull", remote.address, "first", "--workspace", directory)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"coevo: remote {remote.address}: ")
    assert done.err.count("\n") == 1
    assert done.err.rstrip("\n").isprintable()
    after = fingerprint(directory)
    made = {name for name in after if before.get(name) != after[name] and name not in OWN}
    assert not [name for name in made if not name.startswith("cache") and name not in ("runs",)]
    # Objects under the names of their content are no harm: nothing names them.
    objects = [directory / name for name in made if (directory / name).is_file()]
    assert all(path.parent.name + path.stem == md5(path) for path in objects)
    assert fingerprint(scene / "outside") == outside
    return done.err


@pytest.mark.parametrize(("attack", "said"), CASES)
def test_a_hostile_history_is_refused(refused, remote, scene, tmp_path, attack, said):
    _forge(attack, remote, scene, tmp_path)
    line = refused(remote)
    assert said in line
    assert BUNDLE in line
    assert not (tmp_path / "new" / "cache").exists()


@pytest.mark.parametrize(("attack", "said"), LISTS)
def test_a_hostile_list_of_files_is_refused(refused, remote, scene, tmp_path, attack, said):
    _forge(attack, remote, scene, tmp_path)
    assert said in refused(remote)


def test_what_is_small_only_as_long_as_it_is_packed_is_refused(refused, remote, monkeypatch):
    monkeypatch.setattr("coevo.lineage.remote.bundle.TOTAL", 1000)
    assert "its objects have" in refused(remote)


def test_lists_that_are_many_are_refused_together(refused, remote, monkeypatch):
    monkeypatch.setattr("coevo.lineage.remote.remote_objects.FILES", 3)
    assert "its lists name more than 3 files" in refused(remote)


@pytest.mark.soak
def test_the_same_attacks_are_refused_from_s3(coevo, bucket, scene, tmp_path):
    real = bucket.read(BUNDLE)
    for number, case in enumerate([*CASES, *LISTS]):
        attack, said = case.values
        (tmp_path / str(number)).mkdir()
        bucket.write(BUNDLE, real)
        _forge(attack, bucket, scene, tmp_path / str(number))
        assert said in _pull(coevo, bucket, scene / "old", scene), case.id
    bucket.write(BUNDLE, real)
    assert coevo("pull", bucket.address, "--workspace", tmp_path / "new").code == 0


def _forge(attack, remote, scene, scratch):
    forged = Forged(remote, scratch, scene / "outside")
    attack(forged)
    forged.push()


@pytest.mark.full
def test_a_manifest_of_600_megabytes_takes_little_memory(remote, scene, tmp_path):
    _, usual = _peak("pull", remote.address, "nobody", "--workspace", tmp_path / "new")
    _forge(attacks.manifest_of_600_megabytes, remote, scene, tmp_path)
    assert (remote.root / BUNDLE).stat().st_size < 2_000_000
    done, peak = _peak("pull", remote.address, "first", "--workspace", tmp_path / "new")
    (refusal,) = (line for line in done.stderr.splitlines() if not line.endswith(" ..."))  # the others name steps
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "a blob of 600000000 bytes" in refusal
    assert peak < usual + 100_000


def _peak(*arguments):
    """Run a command; the most memory (kB) that it or a child of it took."""
    counted = "import resource as r, subprocess as s, sys; c = s.run([sys.executable, '-m', 'coevo.flows', "
    counted += "*sys.argv[1:]]); "
    counted += "print(r.getrusage(r.RUSAGE_CHILDREN).ru_maxrss, file=open(3, 'w')); sys.exit(c.returncode)"
    read, write = os.pipe()
    command = ["bash", "-c", f'exec "$@" 3>&{write}', "bash", sys.executable, "-c", counted, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, pass_fds=[write])
    os.close(write)
    with os.fdopen(read) as said:
        return done, int(said.read())


def _socket(path):
    with socket.socket(socket.AF_UNIX) as made, tempfile.TemporaryDirectory() as short:
        made.bind(f"{short}/socket")  # of a few characters: the system allows a hundred
        Path(short, "socket").rename(path)


IRREGULAR = {
    "pipe": os.mkfifo,
    "link": lambda path: path.symlink_to("/dev/zero"),
    "directory": Path.mkdir,
    "device": lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5)),
    "socket": _socket,
}
"""How to create what is no regular file, by its kind."""


@pytest.mark.parametrize("kind", IRREGULAR)
@pytest.mark.parametrize("what", ["coevo.json", BUNDLE, "list of the policy", "list of the bank", "weights", "table"])
def test_what_is_no_regular_file_is_not_opened(coevo, remote, scene, tmp_path, kind, what):
    path = remote.root / what if "." in what else _objects(remote, scene)[what]
    _replace(path, kind)
    for command, workspace in (("pull", tmp_path / "new"), ("push", scene / "source")):
        _refused_by_name(coevo(command, remote.address, "first", "--workspace", workspace), path)


@pytest.mark.full
@pytest.mark.parametrize("size", [LIMIT + 1, 1 << 43], ids=["larger than a list", "larger than the disk"])
@pytest.mark.parametrize("what", ["coevo.json", BUNDLE, "list of the policy", "list of the bank", "weights", "table"])
def test_a_sparse_file_is_not_copied(coevo, remote, scene, tmp_path, what, size):
    path = remote.root / what if "." in what else _objects(remote, scene)[what]
    path.unlink()
    with path.open("wb") as file:
        file.truncate(size)
    done = coevo("pull", remote.address, "first", "--workspace", tmp_path / "new")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert path.name in done.err
    copied = [found for found in (tmp_path / "new").rglob("*") if found.is_file() and found.stat().st_size >= LIMIT]
    assert (copied, [found for found in (tmp_path / "new/runs").glob("*") if found.is_dir()]) == ([], [])


@pytest.mark.full
@pytest.mark.parametrize("kind", IRREGULAR)
def test_each_file_of_a_remote_is_refused_unless_it_is_regular(coevo, remote, scene, tmp_path, kind):
    files = sorted(path for path in remote.root.rglob("*") if path.is_file() and path.name != ".lock")
    assert len(files) > 20
    for number, path in enumerate(files):
        path.rename(tmp_path / "regular")
        _replace(path, kind)
        workspace = tmp_path / str(number)
        _refused_by_name(coevo("pull", remote.address, "first", "--workspace", workspace), path)
        assert not [found for found in (workspace / "runs").glob("*") if found.is_dir()]
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        (tmp_path / "regular").rename(path)
    assert coevo("pull", remote.address, "first", "--workspace", tmp_path / "whole").code == 0


@pytest.mark.parametrize("kind", IRREGULAR)
def test_a_file_system_that_clones_files_does_not_pass_the_check(remote, scene, tmp_path, coevo, monkeypatch, kind):
    clones = []

    def clone(target, request, source):
        clones.append(os.write(target, os.pread(source, os.fstat(source).st_size, 0)))
        os.lseek(target, 0, os.SEEK_SET)

    monkeypatch.setattr("coevo.lineage.remote.local_remote.fcntl.ioctl", clone)
    assert coevo("pull", remote.address, "first", "--workspace", tmp_path / "whole").code == 0
    assert len(clones) > 20
    path = _objects(remote, scene)["weights"]
    _replace(path, kind)
    _refused_by_name(coevo("pull", remote.address, "first", "--workspace", tmp_path / "new"), path)


def _replace(path, kind):
    path.unlink(missing_ok=True)
    try:
        IRREGULAR[kind](path)
    except PermissionError:
        pytest.skip(f"this user may not create a {kind}")
    if kind != "link":
        path.chmod(0o444)  # as DVC marks what it has checked


def _refused_by_name(done, path):
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert f"{path} is not a regular file: remove it there" in done.err


def _objects(remote, scene):
    """Objects of the remote by what they are of."""
    weights = (scene / "source/runs/first/lineage/policy/weights").read_bytes()
    found = {path: path.read_bytes() for path in sorted((remote.root / "cache/files").rglob("*")) if path.is_file()}
    return {
        "list of the policy": _first(found, lambda text: text.startswith(b"[") and b'"weights"' in text),
        "list of the bank": _first(found, lambda text: text.startswith(b"[") and b"entries.lance" in text),
        "weights": _first(found, lambda text: text == weights),
        "table": _first(found, lambda text: b"lotus a" in text),
    }


def _first(found, fits):
    return next(path for path, text in found.items() if fits(text))


def test_a_push_checks_what_the_remote_has(coevo, remote, scene, tmp_path):
    source = shutil.copytree(scene / "source", tmp_path / "source")
    _forge(attacks.HISTORY["link in the tree"][0], remote, scene, tmp_path)
    before = fingerprint(remote.root)
    done = coevo("push", remote.address, "first", "--workspace", source)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "'evil.dvc' with mode 120000" in done.err
    assert fingerprint(remote.root) == before


def test_a_push_follows_no_link_at_the_remote(coevo, remote, scene, tmp_path):
    source = shutil.copytree(scene / "source", tmp_path / "source")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (remote.root / ".lock.new").symlink_to(victim)
    advance(source, "lotus b")
    assert coevo("push", remote.address, "first", "--workspace", source).code == 0
    assert victim.read_text() == "precious"


@pytest.mark.full
def test_genuine_runs_are_pulled_whatever_was_done_with_them(coevo, small_workspace, tmp_path):
    source, address = copy_run(small_workspace, tmp_path / "source"), tmp_path / "remote"
    at = ("--workspace", source)
    lineage = source / "runs" / "first" / "lineage"
    person = ("git", "-c", "user.name=one", "-c", "user.email=one@localhost")
    assert coevo("rollback", "first", "--to", "1", *at).code == 0
    assert coevo("tag", "first@2", "best", *at).code == 0
    subprocess.run([*person, "tag", "-a", "-m", "said", "said", "r1"], cwd=lineage, check=True)
    assert coevo("branch", "first@1", "second", "update.optimizer.lr=1e-5", *at).code == 0
    subprocess.run([*person, "update-ref", "refs/dropped/r3", "r3"], cwd=lineage, check=True)
    assert coevo("push", address, *at).code == 0
    done = coevo("pull", address, "--workspace", tmp_path / "new")
    assert done.code == 0, done.err
    assert content(tmp_path / "new", "second") == content(source, "second")
    assert states(tmp_path / "new", "first") == states(source, "first")
    tags = ["git", "tag", "--list", "[!r]*"]
    listed = subprocess.run(tags, cwd=tmp_path / "new/runs/first/lineage", capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["best", "said"]
