"""``coevo push`` and ``coevo pull`` with a directory as remote."""

import json
import shutil
import subprocess
import sys
from unittest.mock import Mock

import pytest
from support import small_run
from support.remotes import advance, content, copy_run, files_in, forget

from coevo.configs.load.load import load_recipe
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.remote.push import push
from coevo.lineage.remote.remote_address import to_push
from coevo.lineage.remote.remote_objects import Objects
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank


@pytest.fixture
def source(small_workspace, tmp_path):
    """A workspace with the run ``first`` alone, to be changed."""
    return copy_run(small_workspace, tmp_path / "source")


@pytest.fixture
def remote(tmp_path):
    return tmp_path / "remote ö"


@pytest.fixture(scope="module")
def sent(small_workspace, tmp_path_factory):
    """A remote that has the run ``first``. Nothing may change it."""
    directory = tmp_path_factory.mktemp("sent") / "remote"
    run = Workspace(small_workspace).existing("first")
    push(run, small_workspace / "cache", to_push(str(directory)), Bank, Mock())
    return directory


@pytest.fixture
def pushed(sent, remote):
    """The run is at the remote."""
    shutil.copytree(sent, remote)


@pytest.fixture
def call(coevo):
    """Run push or pull in a workspace; the one row it prints."""

    def run(command, remote, workspace, *names):
        done = coevo(command, remote, *names, "--json", "--workspace", workspace)
        assert (done.code, done.err) == (0, "")
        (row,) = json.loads(done.out)
        return row

    return run


def git(workspace, *arguments):
    lineage = workspace / "runs" / "first" / "lineage"
    return subprocess.run(["git", *arguments], cwd=lineage, capture_output=True, text=True, check=True).stdout


def damage(path):
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"x")


def test_a_pulled_run_is_the_run_and_goes_on_equally(call, source, remote, tmp_path):
    new = tmp_path / "new"
    sent = call("push", remote, source)
    assert (sent["before"], sent["revision"]) == (None, 3)
    fetched = call("pull", remote, new)
    assert (fetched["revision"], fetched["files"] > 0) == (3, True)
    assert call("pull", remote, new)["files"] == 0
    # Who pushed it has never seen the list of the bank's files.
    assert call("pull", remote, source)["files"] == 1
    assert content(new) == content(source)
    advance(source, "lotus mug in safe 4")
    advance(new, "lotus mug in safe 4")
    assert content(new)[0] == content(source)[0]


def test_what_is_there_is_not_sent_again(call, source, remote):
    first = call("push", remote, source)
    before = files_in(remote)
    again = call("push", remote, source)
    assert (again["before"], again["files"], again["size"]) == (3, 0, 0)
    assert files_in(remote) == before
    advance(source, "lotus mug in safe 4")
    more = call("push", remote, source)
    # Policy and its list; data, manifest and transaction of the table of entries; list of the bank; the bundle.
    assert more["files"] == 7 < first["files"]
    after = files_in(remote)
    assert {name for name in before if before[name] != after[name]} == {
        next(n for n in before if n.suffix == ".bundle")
    }


@pytest.mark.full
def test_an_older_copy_is_brought_up_to_date(call, source, remote, tmp_path):
    old = copy_run(source, tmp_path / "old")
    for number in range(2):
        advance(source, f"lotus mug in safe {number}")
    call("push", remote, source)
    # A killed session left table versions whose numbers mean something else at the remote.
    forget(old, "lotus never committed")
    forget(old, "lotus never committed either")
    fetched = call("pull", remote, old)
    assert (fetched["before"], fetched["revision"]) == (3, 5)
    assert content(old) == content(source)
    assert not git(old, "status", "--porcelain")
    advance(old, "lotus mug in safe 9")
    advance(source, "lotus mug in safe 9")
    assert content(old)[0] == content(source)[0]
    call("push", remote, old)


def test_diverged_runs_are_refused_and_stay_as_they_are(call, refused, source, remote, tmp_path):
    other = copy_run(source, tmp_path / "other")
    for workspace, lesson in ((source, "lotus a"), (other, "lotus b")):
        advance(workspace, lesson)
    call("push", remote, source)
    before, ours = files_in(remote), content(other)
    shown = [git(workspace, "rev-parse", "--short=12", "main").strip() for workspace in (other, source)]
    for command in ("push", "pull"):
        said = refused(command, remote, "first", workspace=other)
        assert f"from revision 4 on they differ, {shown[0]} here and {shown[1]} there" in said
    assert files_in(remote) == before
    assert content(other) == ours


def test_who_is_behind_pulls_and_who_is_ahead_pushes(call, refused, source, remote, tmp_path):
    old = copy_run(source, tmp_path / "old")
    advance(source, "lotus a")
    call("push", remote, source)
    assert "up to 3, " in (said := refused("push", remote, "first", workspace=old))
    assert "pull it first" in said
    advance(source, "lotus b")
    assert "push it instead" in refused("pull", remote, "first", workspace=source)


def test_another_run_of_the_same_name_is_refused(pushed, refused, source, remote, tmp_path):
    small_run.build(tmp_path / "other", overrides=["seed=99"])
    assert "from revision 0 on they differ" in refused("push", remote, "first", workspace=tmp_path / "other")
    Workspace(tmp_path / "new").create("first", Workspace(source).existing("first").read_config())
    assert "is not the one at" in refused("pull", remote, "first", workspace=tmp_path / "new")


def test_what_was_dropped_is_not_sent(call, source, remote, tmp_path):
    state = json.loads(git(source, "show", "r1:manifest.json"))["state"]
    git(source, "update-ref", "refs/dropped/r1", "r1")
    git(source, "update-ref", "-d", "refs/tags/r1")
    shutil.rmtree(source / "cache" / "files" / "md5" / state["artifacts"]["policy"][:2])
    call("push", remote, source)
    sent = {name.parent.name + name.name for name in files_in(remote)}
    assert state["artifacts"]["policy"] not in sent
    assert json.loads(git(source, "show", "r2:manifest.json"))["state"]["artifacts"]["policy"] in sent
    call("pull", remote, tmp_path / "new")
    assert "refs/dropped/r1" in git(tmp_path / "new", "for-each-ref")
    assert git(tmp_path / "new", "rev-list", "main") == git(source, "rev-list", "main")


@pytest.mark.full
def test_names_given_on_either_side_are_kept(pushed, call, source, remote, tmp_path):
    other = tmp_path / "other"
    call("pull", remote, other)
    git(source, "tag", "good", "r2")
    git(other, "tag", "better", "r3")
    call("push", remote, source)
    call("push", remote, other)
    call("pull", remote, source)
    call("pull", remote, other)
    for workspace in (source, other):
        assert git(workspace, "tag", "--list", "*e*", "g*").split() == ["better", "good"]


@pytest.mark.full
def test_damage_at_the_remote_is_named_and_nothing_is_made(call, refused, source, remote, tmp_path):
    old = copy_run(source, tmp_path / "old")
    advance(source, "lotus a")
    call("push", remote, source)
    parts = parts_of(remote, source)
    for kind, struck in parts.items():
        sound = struck.read_bytes()
        if kind == "bundle":
            struck.write_bytes(sound[:-50])
        else:
            struck.unlink() if kind == "gone" else damage(struck)
        said = refused("pull", remote, "first", workspace=tmp_path / kind)
        assert str(struck if kind != "bundle" else "runs/first/lineage.bundle") in said, kind
        assert not [path for path in (tmp_path / kind / "runs").iterdir() if path.is_dir()]
        if kind == "policy":
            before = content(old)
            refused("pull", remote, "first", workspace=old)
            assert content(old) == before
        struck.write_bytes(sound)
    for kind in ("policy", "list", "bank"):
        parts[kind].unlink()
    assert call("push", remote, source)["files"] == 3
    call("pull", remote, tmp_path / "new")
    assert content(tmp_path / "new") == content(source)


def parts_of(remote, source):
    """Files of the remote by the kind of damage."""
    weights = (Workspace(source).existing("first").lineage / "policy" / "weights").read_bytes()
    objects = sorted(path for path in (remote / "cache" / "files" / "md5").rglob("*") if path.is_file())
    policy = next(path for path in objects if path.read_bytes() == weights)
    return {
        "policy": policy,
        "gone": policy,
        "list": next(path for path in objects if path.suffix == ".dir" and b'"weights"' in path.read_bytes()),
        "bank": next(path for path in objects if b"lotus heat not stove" in path.read_bytes()),
        "bundle": remote / "runs" / "first" / "lineage.bundle",
    }


@pytest.mark.parametrize("kind", ["policy", "table"])
def test_a_damaged_run_is_not_pushed(refused, source, remote, kind):
    paths = Workspace(source).existing("first")
    if kind == "policy":
        weights = (paths.lineage / "policy" / "weights").read_bytes()
        objects = sorted((source / "cache" / "files").rglob("*"))
        damage(next(path for path in objects if path.is_file() and path.read_bytes() == weights))
    else:
        next((paths.bank / "entries.lance" / "_versions").glob("*613.manifest")).unlink()
    said = refused("push", remote, "first", workspace=source)
    assert ("does not match its name" if kind == "policy" else "bank table entries: version 2") in said
    assert not (remote / "runs").exists()


def test_a_run_is_pushed_while_it_goes_on_but_not_pulled(call, refused, source, remote):
    paths = Workspace(source).existing("first")
    with writer_lock(paths):
        assert call("push", remote, source)["revision"] == 3
        assert "is in use by process" in refused("pull", remote, "first", workspace=source)


@pytest.fixture
def meanwhile(monkeypatch):
    """``meanwhile(doing)`` calls a function once, while the next pull fetches files."""

    def during(doing):
        fetch, done = Objects._fetch_files, []

        def both(self, *arguments):
            if not done:
                done.append(True)
                doing()
            fetch(self, *arguments)

        monkeypatch.setattr(Objects, "_fetch_files", both)

    return during


def test_runs_begin_while_another_is_pulled_and_nothing_is_collected(
    pushed, call, refused, source, remote, tmp_path, meanwhile
):
    new, config = Workspace(tmp_path / "new"), Workspace(source).existing("first").read_config()
    new.create("other", config)

    def begin():
        new.create("third", config)
        assert "another process pulls or adds files" in refused("gc", "--apply", workspace=new.root)

    meanwhile(begin)
    assert call("pull", remote, new.root)["revision"] == 3
    assert {run.name for run in new.runs()} == {"other", "third", "first"}


def test_a_run_of_the_name_that_begins_meanwhile_stays(pushed, refused, source, remote, tmp_path, meanwhile):
    new, config = Workspace(tmp_path / "new"), Workspace(source).existing("first").read_config()
    meanwhile(lambda: new.create("first", config))
    assert "run 'first' is already in" in refused("pull", remote, "first", workspace=new.root)
    assert new.existing("first").read_config() == config


def test_a_bank_ahead_of_its_revision_is_pushed_as_the_revision(call, source, remote, tmp_path):
    forget(source, "lotus not committed")
    call("push", remote, source)
    call("pull", remote, tmp_path / "new")
    assert content(tmp_path / "new") == content(source)
    paths = Workspace(tmp_path / "new").existing("first")
    with Lineage.open(paths.lineage, tmp_path / "new" / "cache") as lineage:
        assert Bank(paths.bank).hashes() == lineage.history.head().tables


@pytest.mark.full
def test_without_names_all_runs_go_and_one_that_is_refused_stops_no_other(coevo, small_workspace, remote, tmp_path):
    source = tmp_path / "source"
    for name in ("bankless", "first", "other"):
        copy_run(small_workspace, source, name)
    new = Workspace(source).create("new", load_recipe(small_run.RECIPE))
    Lineage.open(new.lineage, source / "cache")
    assert coevo("push", remote, "--workspace", source).out.count(" sent.\n") == 3
    assert coevo("pull", remote, "--workspace", tmp_path / "all").out.count(" fetched.\n") == 3
    assert content(tmp_path / "all", "other") == content(source, "other")
    said = coevo("push", remote, "--workspace", source).out
    assert said == "".join(f"{name}@3: up to date, no files sent.\n" for name in ("first", "other", "bankless"))
    bundle = remote / "runs" / "first" / "lineage.bundle"
    bundle.write_bytes(bundle.read_bytes()[:-50])
    (remote / "runs" / "bankless" / "lineage.bundle").write_bytes(b"")
    for options in ((), ("--json",)):
        directory = tmp_path / f"new{len(options)}"
        done = coevo("pull", remote, *options, "--workspace", directory)
        assert done.code == 2
        assert [line.split(": remote ")[0] for line in done.err.splitlines()] == ["coevo: bankless", "coevo: first"]
        assert [row["run"] for row in json.loads(done.out)] == ["other"] if options else "other@3: " in done.out
        assert content(directory, "other") == content(source, "other")
        again = coevo("push", remote, *options, "--workspace", source)
        assert (again.code, again.err.count("\n"), "other" in again.out) == (2, 2, True)


def test_bad_remotes_get_one_line(refused, source, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter").write_text("private")
    empty = tmp_path / "empty"
    empty.mkdir()
    file = tmp_path / "file"
    file.touch()
    assert "not a remote, it holds other files" in refused("push", full, workspace=source)
    assert [path.name for path in full.iterdir()] == ["letter"]
    assert "does not exist: create it" in refused("push", tmp_path / "a" / "b", workspace=source)
    assert "no such directory" in refused("pull", tmp_path / "a", workspace=source)
    assert "it is empty" in refused("pull", empty, workspace=source)
    assert str(file) in refused("push", file, workspace=source)
    assert "unknown kind" in refused("push", "ftp://host/path", workspace=source)
    assert "names no bucket" in refused("push", "s3://", workspace=source)


def test_what_is_not_there_is_named(refused, source, remote, tmp_path):
    assert "No run 'nobody'" in refused("push", remote, "nobody", workspace=source)
    assert "has no run to push" in refused("push", remote, workspace=tmp_path / "none")
    assert not remote.exists()


def test_a_run_or_format_that_the_remote_has_not_is_named(pushed, refused, source, remote):
    assert "it has no run 'nobody'" in refused("pull", remote, "nobody", workspace=source)
    Workspace(source).create("new", Workspace(source).existing("first").read_config())
    assert "has no revision yet" in refused("push", remote, "new", workspace=source)
    (remote / "coevo.json").write_text('{"format": 2}')
    assert "its format is 2, not 1" in refused("pull", remote, workspace=source)
    (remote / "coevo.json").write_text("[]")
    assert "coevo.json is damaged" in refused("pull", remote, workspace=source)


def test_s3_without_its_extra_says_what_to_install(refused, source, monkeypatch):
    monkeypatch.setitem(sys.modules, "dvc_s3", None)
    assert "pip install 'coevo[s3]'" in refused("push", "s3://bucket/team", workspace=source)
