"""Equal seeds give equal states, and neither a kill nor a neighbour changes that."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.runs import RUN, coevo, published, share, states
from support.status import same_everywhere

from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


def test_every_revision_is_published_once(untouched, workspace):
    assert published(workspace, "untouched") == [1, 2, 3]


def test_the_run_commits_every_iteration_and_grows_its_bank(untouched):
    assert [state["iteration"] for state in untouched] == [0, 1, 2, 3]
    assert untouched[-1]["tables"] != untouched[0]["tables"]
    assert len({state["artifacts"]["policy"] for state in untouched}) > 1


def without_length(state):
    return state | {"config": {key: value for key, value in state["config"].items() if key != "iterations"}}


@pytest.mark.soak
def test_a_run_whose_old_revisions_were_dropped_resumes_to_the_same_states(untouched, workspace):
    # To its end, so that everything is published: what is not is kept.
    short = coevo(*RUN, "iterations=2", "--name", "collected", workspace=workspace)
    assert short.returncode == 0, short.stderr
    gone = coevo("gc", "collected", "--keep-last", "1", "--apply", workspace=workspace)
    assert gone.returncode == 0, gone.stderr
    assert "collected drops 1 (" in gone.stdout
    resumed = coevo("resume", "collected", "--iterations", "3", workspace=workspace)
    assert resumed.returncode == 0, resumed.stderr
    assert [without_length(state) for state in states(workspace, "collected")] == list(map(without_length, untouched))
    assert published(workspace, "collected") == [1, 2, 3]


def test_an_evaluation_of_the_last_revision_repeats_the_run_s_own(untouched, workspace):
    done = coevo("evaluate", "untouched", "--json", workspace=workspace)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["success"] == untouched[-1]["metrics"]["agent/success/seen-houses"]


def test_a_run_that_waits_for_a_person_has_an_exit_code_of_its_own_and_a_broken_run_beside_it_stops_nothing(
    untouched, workspace
):
    broken = workspace / "runs" / "homerules-coevo-rl-5"
    broken.mkdir()
    (broken / "created").write_text("yesterday")
    (broken / "config.json").write_text("{}")
    done = coevo(*RUN, "approval.admission=person", "--name", "asking", workspace=workspace)
    listed = coevo("runs", "--json", workspace=workspace)
    planned = coevo("schedule", "list", "--json", workspace=workspace)
    shutil.rmtree(broken)
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines()[-1].startswith("asking@1 waits for approval: coevo approve --list asking")
    states_of = {row["run"]: row["status"] for row in json.loads(listed.stdout)}
    assert (states_of["asking"], states_of["homerules-coevo-rl-5"]) == ("waiting", "faulty")
    assert same_everywhere(workspace, "asking")["status"] == "waiting"
    assert (planned.returncode, planned.stdout) == (0, "[]\n")


@pytest.mark.soak
def test_two_runs_side_by_side_in_another_workspace_have_the_same_states(
    untouched, tmp_path, warmstarts, prefect_url, monkeypatch
):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    other = share(warmstarts, tmp_path / "other")
    with ThreadPoolExecutor(2) as both:
        runs = [both.submit(coevo, *RUN, "--name", name, workspace=other) for name in ("left", "right")]
    for done, name in zip(runs, ("left", "right"), strict=True):
        assert done.result().returncode == 0, done.result().stderr
        assert states(other, name) == untouched


def test_one_run_has_one_writer(workspace, untouched):
    paths = Workspace(workspace).existing("untouched")
    with writer_lock(paths):
        second = coevo("resume", "untouched", "--iterations", "4", workspace=workspace)
    assert paths.read_config().iterations == 3
    assert second.returncode == 2
    assert "is in use by process" in second.stderr
    assert second.stderr.count("\n") == 1


def test_a_run_with_nothing_left_to_do_says_so(workspace, untouched):
    done = coevo("resume", "untouched", workspace=workspace)
    assert done.returncode == 0
    assert "all of its 3 iterations" in done.stdout


def test_nothing_kept_is_a_pickle(workspace, warmstarts, untouched):
    kept = [path for directory in (workspace, warmstarts) for path in directory.rglob("*") if path.is_file()]
    assert not [path for path in kept if path.suffix in {".pkl", ".pickle", ".pt", ".pth", ".bin", ".joblib"}]
    # A pickle of protocol 2 or later, or a zip archive as torch.save writes it.
    assert not [path for path in kept if path.read_bytes()[:2] in (b"\x80\x02", b"\x80\x04", b"\x80\x05", b"PK")]
