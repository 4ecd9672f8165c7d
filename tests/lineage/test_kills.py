"""A run killed anywhere in the protocol continues to the same states as one that nothing disturbed."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import git_at, lineage_driver
from support.lineage_driver import lineage_in, play, run_in, states

from coevo.lineage.git import Git
from coevo.utilities.errors import CoevoError

DRIVER = Path(lineage_driver.__file__)
REVISIONS = 12
FEW = 4
"""Revisions of tests that do not kill often."""
KILLS = (
    "git:init@1+",
    "git:add@1+",
    "git:commit@1+",
    "lineage_driver:Shelf.write@1+",
    "lineage_driver:Shelf.write@2+",
    "coevo.lineage.objects.artifacts:remove@2+",
    "shutil:move@1+",
    "dvc_data.hashfile.transfer:transfer@1",
    "dvc_data.hashfile.transfer:transfer@1+",
    "coevo.lineage.objects.artifacts:Artifacts._record@2",
    "coevo.lineage.lineage:write_manifest@1",
    "os:fsync@2",
    "coevo.lineage.lineage:write_manifest@1+",
    "coevo.lineage.repository:Repository.reset@1+",
    "lineage_driver:Shelf.restore@1+",
    "git:add@1+",
    "coevo.lineage.objects.artifacts:Artifacts.checkout@1",
    "git:commit@1",
    "git:update-ref@1",
    "coevo.lineage.lineage:Lineage.commit@2+",
    "coevo.lineage.publish_cursor:Cursor.advance@2",
    "coevo.lineage.publish_cursor:Cursor.advance@2+",
)


INSIDE_GIT = {
    "git:add/index locked@1": (0, ["index.lock"]),
    "git:commit/index locked@1": (0, ["index.lock"]),
    "git:commit/index written@1": (0, []),
    "git:commit/message written@1": (0, []),
    "git:commit/objects written@1": (0, ["HEAD.lock"]),
    "git:commit/refs locked@1": (0, ["HEAD.lock", "refs/heads/main.lock"]),
    "git:commit/refs updated@1": (1, []),
    "git:commit/about to end@1": (1, []),
    "git:update-ref/refs locked@1": (0, ["refs/tags/r3.lock"]),
    "git:update-ref/refs updated@2": (1, []),
}
"""How many revisions each of these kills adds, and the locks that it leaves."""


def drive(directory, revisions=REVISIONS, kill=(), **how):
    done = subprocess.run(
        [sys.executable, DRIVER, directory, str(revisions), *kill], capture_output=True, text=True, check=False, **how
    )
    assert (done.stdout, done.stderr) == ("", "")
    return done.returncode


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    directory = tmp_path_factory.mktemp("untouched")
    play(directory, REVISIONS)
    return states(directory)


def test_each_revision_depends_on_the_one_before(untouched):
    assert [state["revision"] for state in untouched] == list(range(REVISIONS))
    assert [state["parent"] for state in untouched] == [None, *range(REVISIONS - 1)]
    for part in ("policy", "optimizer", "episodes"):
        assert len({state["artifacts"][part] for state in untouched}) == REVISIONS


@pytest.mark.full
def test_a_run_survives_one_kill_after_another(directory, untouched):
    for kill in KILLS:
        assert drive(directory, kill=[kill]) == -signal.SIGKILL, f"{kill}: not reached"
        print(f"killed at {kill} with {len(states(directory)) if run_in(directory).lineage.exists() else 0} revisions")
    play(directory, REVISIONS)
    assert states(directory) == untouched
    ledger = json.loads((run_in(directory).root / "ledger.json").read_text())
    assert list(ledger.values()) == untouched
    assert not play(directory, REVISIONS)


@pytest.mark.soak
def test_a_run_survives_one_kill_after_another_inside_git(directory, tmp_path, untouched):
    play(directory, 2)
    for number, (kill, (added, locks)) in enumerate(INSIDE_GIT.items()):
        before, path = len(states(directory)), git_at.path_with(kill, tmp_path / f"git {number}")
        assert drive(directory, env={"PATH": path}, process_group=0) == -signal.SIGKILL, f"{kill}: not reached"
        found = [lock.removeprefix(".git/") for lock in Git(run_in(directory).lineage).locks()]
        assert (len(states(directory)) - before, found) == (added, locks), kill
    play(directory, REVISIONS)
    assert states(directory) == untouched
    assert not play(directory, REVISIONS)


@pytest.mark.parametrize(
    "part",
    [
        "lineage_driver.Shelf.restore",
        "coevo.lineage.repository.Repository.reset",
        "coevo.lineage.objects.artifacts.Artifacts.checkout",
    ],
)
def test_recovery_needs_each_of_its_parts(directory, untouched, monkeypatch, part):
    drive(directory, kill=["git:commit@3"])
    monkeypatch.setattr(part.replace("lineage_driver", "support.lineage_driver"), lambda *_, **__: [])
    try:
        play(directory, FEW)
    except CoevoError:
        return
    assert states(directory) != untouched[:FEW]


@pytest.mark.full
def test_two_runs_share_a_cache_at_the_same_time(directory, untouched):
    pair = [
        subprocess.Popen([sys.executable, DRIVER, directory / name, str(FEW)], env={"PATH": "/usr/bin:/bin"})
        for name in ("one", "two")
    ]
    for name in ("one", "two"):
        (directory / name).mkdir(exist_ok=True)
    assert [process.wait() for process in pair] == [0, 0]
    assert states(directory / "one") == states(directory / "two") == untouched[:FEW]


def test_nothing_is_shown_even_on_a_terminal(directory):
    play(directory, 1)
    outer, inner = pty.openpty()
    subprocess.run([sys.executable, DRIVER, directory, "3"], stdin=inner, stdout=inner, stderr=inner, check=True)
    os.write(inner, b"end")
    shown = b""
    while not shown.endswith(b"end"):
        shown += os.read(outer, 1000)
    assert shown.replace(b"\x1b[0m", b"") == b"end"  # colorama resets colours at exit, which shows nothing
    os.close(inner)
    os.close(outer)


def test_recovery_waits_for_a_git_command_that_outlived_its_process(directory, tmp_path, monkeypatch):
    play(directory, 2)
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *" commit "*) touch "{tmp_path}/began"; sleep 1;; esac\n"{real}" "$@"\n'
        f'case "$*" in *" commit "*) touch "{tmp_path}/ended";; esac\n'
    )
    slow.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
        child = subprocess.Popen([sys.executable, DRIVER, directory, "3"])
        while not (tmp_path / "began").exists():
            assert child.poll() is None
            time.sleep(0.01)
        child.kill()
        child.wait()
    assert not (tmp_path / "ended").exists()
    recovery = play(directory, 2)
    assert (tmp_path / "ended").exists()
    assert recovery.tags == ("r2",)
    assert lineage_in(directory).history.head().revision == 2
