"""A workspace of another user, and a user whom the system does not know: both are usual in containers."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.kept import whole
from support.soak import mostly_soak

OWN = (
    ("log", "first"),
    ("bank", "show", "first"),
    ("gc",),
    ("tag", "first@1", "good"),
    ("rollback", "first", "--to", "1"),
)
ACROSS = ("branch", "first@2", "mine"), ("push", "REMOTE", "first"), ("pull", "REMOTE", "first")
NOBODY = 4242
"""A user id without an entry in passwd."""


@pytest.fixture
def another_owner(tmp_path, monkeypatch):
    """Every repository belongs to another user for git, also for processes that git starts."""
    trap = tmp_path / "bin"
    trap.mkdir()
    (trap / "git").write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {shutil.which("git")} "$@"\n')
    (trap / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{trap}{os.pathsep}{os.environ['PATH']}")


def test_the_guard_of_git_is_up(another_owner, copied, tmp_path):
    lineage = copied / "runs/first/lineage"
    done = subprocess.run(["git", "clone", lineage, tmp_path / "clone"], capture_output=True, text=True, check=False)
    assert "dubious ownership" in done.stderr


def test_a_branch_of_a_run_of_another_user(another_owner, coevo, copied):
    done = coevo("branch", "first@2", "mine")
    assert (done.code, done.err) == (0, "")
    assert whole(copied, "mine", 2) == whole(copied, "first", 2)


@pytest.mark.full
@pytest.mark.parametrize("command", [*OWN, *ACROSS], ids=lambda command: command[0])
def test_a_workspace_of_another_user_is_used_like_ones_own(another_owner, coevo, copied, tmp_path, command):
    arguments = [str(tmp_path / "remote") if part == "REMOTE" else part for part in command]
    if command[0] == "pull":
        assert coevo("push", tmp_path / "remote", "first").code == 0
        shutil.rmtree(copied / "runs" / "first")
    done = coevo(*arguments)
    assert done.code == 0, done.err


@pytest.mark.full
def test_an_older_copy_of_another_user_is_updated(another_owner, coevo, copied, tmp_path):
    older = shutil.copytree(copied, tmp_path / "older")
    assert coevo("rollback", "first", "--to", "1").code == 0
    assert coevo("push", tmp_path / "remote", "first").code == 0
    done = coevo("pull", tmp_path / "remote", "first", "--workspace", older)
    assert done.code == 0, done.err


def test_the_doctor_names_the_owner(coevo, copied, monkeypatch):
    rows = {row["check"]: row for row in json.loads(coevo("doctor", "--json").out)}
    assert "belongs" not in rows["workspace"]["found"]
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    rows = {row["check"]: row for row in json.loads(coevo("doctor", "--json").out)}
    assert f"belongs to another user ({os.getuid()})" in rows["workspace"]["found"]


def nobody(*arguments, user=NOBODY, **environment):
    """Run a command as a user id that passwd does not have, or as another one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "USER", "LOGNAME")}
    line = ["unshare", "--user", f"--map-user={user}", sys.executable, *map(str, arguments)]
    return subprocess.run(line, env=kept | environment, capture_output=True, text=True, check=False)


HOMES = {
    "none": {},
    "empty": {"HOME": ""},
    "missing": {"HOME": "/nonexistent"},
    "not writable": {"HOME": "/proc"},
    "relative": {"HOME": "home"},
    "a file": {"HOME": "/etc/passwd"},
    "a name": {"USER": "somebody"},
    "taken": {"TAKEN": "1"},
}


@pytest.mark.full
@pytest.mark.parametrize("case", mostly_soak([*HOMES], "none", "taken"))
def test_a_user_whom_passwd_does_not_have_gets_a_home(tmp_path, case):
    home = tmp_path / f"coevo-home-{NOBODY}"
    if case == "taken":
        home.symlink_to(tmp_path)
    script = (
        "import getpass, sys; from coevo.flows.cli.app import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "import prefect.settings, mlflow; from pathlib import Path\n"
        "Path.home().joinpath('file').touch(); getpass.getuser()"
    )
    done = nobody("-c", script, "runs", "--workspace", tmp_path / "workspace", TMPDIR=str(tmp_path), **HOMES[case])
    assert done.returncode == 0, done.stderr
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("coevo: "))
    assert said.startswith(f"coevo: user id {NOBODY} has no entry in passwd and HOME")
    found = Path(said.partition(": ")[2].rpartition(": ")[2].partition(" is used")[0])
    assert (found == home) == (case != "taken")
    assert found.is_dir()
    assert not found.is_symlink()


@pytest.mark.parametrize("home", ["/proc/none", "/proc/none/nobody", "/dev/null/home", "/etc/passwd/x"])
def test_a_known_user_without_a_home_gets_one(tmp_path, home):
    """Such as nobody in a container, whose home is /nonexistent."""
    known = next((each.pw_uid for each in pwd.getpwall() if each.pw_uid), None)
    if known is None:
        pytest.skip("passwd has root alone")
    script = "from coevo.flows.console.home import ensure_home; ensure_home(); import os; print(os.environ['HOME'])"
    done = nobody("-c", script, user=known, HOME=home, TMPDIR=str(tmp_path))
    assert done.stdout == f"{tmp_path / f'coevo-home-{known}'}\n", done.stderr
    said = f"coevo: user id {known} has no home directory: {home} does not exist: {tmp_path / f'coevo-home-{known}'} is"
    assert done.stderr.startswith(said)


@pytest.mark.full
def test_a_user_whom_passwd_does_not_have_rehearses_a_run(tmp_path):
    line = ("-m", "coevo.flows", "run", "homerules-coevo-rl", "--dry-run", "--workspace", tmp_path / "workspace")
    done = nobody(*line, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_the_doctor_names_a_user_whom_passwd_does_not_have(tmp_path):
    done = nobody("-m", "coevo.flows", "doctor", "--json", "--workspace", tmp_path, TMPDIR=str(tmp_path))
    rows = {row["check"]: row for row in json.loads(done.stdout)}
    home = tmp_path / f"coevo-home-{NOBODY}"
    assert rows["user"]["found"] == f"id {NOBODY}, without an entry in passwd, home {home}"


def test_a_writable_home_of_an_unknown_user_is_kept_and_a_known_user_is_left_alone(tmp_path):
    script = (
        "import os, getpass; from coevo.flows.console.home import ensure_home; ensure_home(); "
        "print(os.environ['HOME'], getpass.getuser())"
    )
    done = nobody("-c", script, HOME=str(tmp_path))
    assert (done.stdout, done.stderr) == (f"{tmp_path} uid-{NOBODY}\n", "")
    plain = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert plain.stdout.startswith("/nonexistent ")
    assert plain.stderr == ""
