"""Pushing and pulling survive kills, and a pulled run continues to the states of one that was never moved."""

import threading

import pytest
from support import small_run
from support.remotes import advance, content, copy_run
from support.runs import SMALL, coevo, share, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

PUSH = (
    "coevo.lineage.remote.local_remote:copy_regular@3+",
    "coevo.lineage.remote.remote_objects:Objects._send@1+",
    "coevo.lineage.remote.local_remote:LocalStore.write@1",
    "os:fsync@1+",
)
CREATE = (
    "coevo.lineage.remote.local_remote:copy_regular@3+",
    "coevo.lineage.remote.remote_objects:Objects._fetch_files@1",
    "coevo.lineage.repository:Repository.reset@1+",
    "coevo.lineage.lineage:Lineage.recover@1+",
)
UPDATE = (
    "coevo.lineage.remote.pull:place_bank@1",
    "pathlib:Path.replace@3",
    "coevo.lineage.workspace:RunPaths.write_config@1+",
    "coevo.lineage.remote.pull:set_refs@1",
)


@pytest.fixture
def source(tmp_path):
    small_run.build(tmp_path / "source")
    return tmp_path / "source"


def killed(kill, *arguments, workspace):
    done = coevo(*arguments, workspace=workspace, kill=kill)
    assert done.returncode == -9, f"{kill}: {done.stdout}{done.stderr}"


def completed(*arguments, workspace):
    done = coevo(*arguments, workspace=workspace)
    assert done.returncode == 0, done.stderr


def test_a_remote_has_the_old_revision_or_the_new_one_wherever_a_push_dies(source, tmp_path):
    remote = tmp_path / "remote"
    completed("push", remote, workspace=source)
    old = content(source)
    advance(source, "lotus a")
    for number, kill in enumerate(PUSH):
        killed(kill, "push", remote, workspace=source)
        completed("pull", remote, workspace=tmp_path / str(number))
        assert content(tmp_path / str(number)) == old, kill
    killed("coevo.lineage.remote.local_remote:LocalStore.write@1+", "push", remote, workspace=source)
    completed("pull", remote, workspace=tmp_path / "after")
    assert content(tmp_path / "after") == content(source)
    completed("push", remote, workspace=source)


def test_a_new_run_is_there_as_a_whole_or_not_at_all_wherever_a_pull_dies(source, tmp_path):
    remote, new = tmp_path / "remote", tmp_path / "new"
    completed("push", remote, workspace=source)
    for kill in CREATE:
        killed(kill, "pull", remote, workspace=new)
        assert not (new / "runs" / "first").exists(), kill
    completed("pull", remote, workspace=new)
    assert content(new) == content(source)
    assert [path.name for path in (new / "runs").iterdir() if path.is_dir()] == ["first"]


@pytest.mark.soak
def test_an_older_copy_stays_usable_wherever_a_pull_dies(source, tmp_path):
    remote, copy = tmp_path / "remote", copy_run(source, tmp_path / "copy")
    old = content(copy)
    for lesson in ("lotus a", "lotus b"):
        advance(source, lesson)
    completed("push", remote, workspace=source)
    for number, kill in enumerate(UPDATE):
        killed(kill, "pull", remote, workspace=copy)
        assert content(copy) == old, kill
        # It could also go on from where it was.
        advance(copy_run(copy, tmp_path / str(number)), "lotus c")
    for number, kill in enumerate(("coevo.lineage.remote.pull:set_refs@1+", "coevo.lineage.lineage:Lineage.recover@1")):
        fresh = copy_run(copy, tmp_path / f"fresh {number}")
        killed(kill, "pull", remote, workspace=fresh)
        assert content(fresh) == content(source)
        advance(fresh, "lotus c")
    completed("pull", remote, workspace=copy)
    assert content(copy) == content(source)


@pytest.mark.soak
def test_a_run_that_goes_on_meanwhile_is_pushed_as_one_of_its_revisions(source, tmp_path):
    remote, stop = tmp_path / "remote", threading.Event()

    def write():
        count = 0
        while not stop.is_set():
            advance(source, f"lotus {(count := count + 1)}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(2):
            completed("push", remote, workspace=source)
    finally:
        stop.set()
        writer.join()
    completed("pull", remote, workspace=tmp_path / "new")
    there, here = content(tmp_path / "new")[0], content(source)[0]
    assert 3 < len(there) <= len(here)
    assert there == here[: len(there)]


def test_a_run_goes_on_elsewhere_to_the_same_states(warmstarts, prefect_url, tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    home, away, remote = share(warmstarts, tmp_path / "home"), tmp_path / "away", tmp_path / "remote"
    after_two = "coevo.lineage.lineage:Lineage.commit@3+"
    killed(after_two, "run", "homerules-coevo-rl", "iterations=3", "seed=5", *SMALL, "--name", "r", workspace=home)
    completed("push", remote, workspace=home)
    completed("pull", remote, workspace=away)
    assert [state["iteration"] for state in states(away, "r")] == [0, 1, 2]
    for workspace in (home, away):
        completed("resume", "r", workspace=workspace)
    assert [state["iteration"] for state in states(away, "r")] == [0, 1, 2, 3]
    assert states(away, "r") == states(home, "r")
