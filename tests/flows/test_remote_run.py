"""A second machine continues a run with nothing but addresses; two machines do not continue it at once."""

import time

import pytest
from support import small_run
from support.remotes import advance, content
from support.runs import coevo, share, states
from support.s3_server import BUCKET
from support.scheduled import RECIPE, SETTINGS
from support.second_machine import guide

from coevo.flows import remote_run
from coevo.flows.remote_run import RemoteClaim, at_remote
from coevo.lineage.remote.remote_address import to_push
from coevo.lineage.remote.remote_lock import RemoteLock
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

REMOTE = f"s3://{BUCKET}/team"


@pytest.fixture
def source(tmp_path):
    small_run.build(tmp_path / "source")
    return tmp_path / "source"


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_run_that_was_killed_continues_on_a_second_machine_to_the_states_of_one_that_stayed(
    warmstarts, no_servers_named, s3, tmp_path
):
    alone, here, there = (share(warmstarts, tmp_path / name) for name in ("alone", "here", "there"))
    first, second, status = ([REMOTE if word == "s3://team/coevo" else word for word in line] for line in guide())
    settings = ("iterations=3", "seed=5", *SETTINGS)
    whole = coevo("run", RECIPE, "--name", "shared", *settings, workspace=alone)
    coevo("down", workspace=alone)
    assert whole.returncode == 0, whole.stderr
    small = [RECIPE if word == "homerules-coevo-rl" else word for word in first]
    killed = coevo(*small, *settings, workspace=here, kill="coevo.lineage.remote.push:push@1+")
    coevo("down", workspace=here)
    assert killed.returncode == -9, killed.stderr
    locked = coevo(*(word for word in second if word != "--take-over"), workspace=there)
    assert locked.returncode == 2
    assert locked.stderr.splitlines()[-1].startswith(f"coevo: run 'shared' at {REMOTE}")
    assert not (there / "runs" / "shared").exists()
    done = coevo(*second, workspace=there)
    coevo("down", workspace=there)
    assert done.returncode == 0, done.stderr
    assert states(there, "shared") == states(alone, "shared")
    assert coevo(*status, workspace=there).stdout.startswith("shared: finished")
    third = tmp_path / "third"  # the lock is free again
    done = coevo("resume", "shared", "--remote", REMOTE, workspace=third)
    coevo("down", workspace=third)
    assert (done.returncode, "has done all of its 3 iterations" in done.stdout) == (0, True), done.stderr
    assert states(third, "shared") == states(alone, "shared")


def test_revisions_go_there_while_they_are_made_and_the_next_machine_has_them(source, tmp_path, monkeypatch):
    monkeypatch.setattr(remote_run, "POLL_INTERVAL_S", 0.1)
    remote, other = str(tmp_path / "remote"), tmp_path / "other"
    with at_remote(Workspace(source), "first", remote):
        with pytest.raises(CoevoError, match="is in use by process"), at_remote(Workspace(other), "first", remote):
            pass
        advance(source, "lotus a")
    with at_remote(Workspace(other), "first", remote):
        assert content(other) == content(source)
        advance(other, "lotus b")
    with at_remote(Workspace(source), "first", remote):
        assert content(source) == content(other)


def test_whoever_is_overtaken_stops_and_sends_nothing_more(source, tmp_path, monkeypatch):
    monkeypatch.setattr(remote_run, "POLL_INTERVAL_S", 0.1)
    monkeypatch.setattr("coevo.lineage.remote.remote_lock.RENEWAL_S", 0.1)
    remote = str(tmp_path / "remote")
    with (
        pytest.raises(CoevoError, match="was taken over by another process"),
        at_remote(Workspace(source), "first", remote),
    ):
        RemoteLock(to_push(remote), "first").take(take_over=True)
        while True:  # until the interrupt
            time.monotonic()
    before = to_push(remote).read("runs", "first", "lineage.bundle")
    advance(source, "lotus a")
    with pytest.raises(CoevoError, match="is in use by process"), at_remote(Workspace(source), "first", remote):
        pass
    assert to_push(remote).read("runs", "first", "lineage.bundle") == before


def test_a_new_run_takes_no_name_that_the_remote_has(source, tmp_path):
    remote = str(tmp_path / "remote")
    with at_remote(Workspace(source), "first", remote):
        pass
    with (
        pytest.raises(CoevoError, match="it has a run 'first'"),
        at_remote(Workspace(tmp_path / "b"), "first", remote, RemoteClaim(new=True)),
    ):
        pass
    assert RemoteLock(to_push(remote), "first").owner() is None
