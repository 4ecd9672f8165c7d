"""A study that is killed again and again ends as if nothing had happened: its runs are those of `coevo run`."""

import json
import signal

import pytest
from mlflow import MlflowClient
from support.runs import SMALL, coevo, revisions, share, states
from support.two_arms import ENTRIES, RUNS

from coevo.configs.load.load_study import stored_study
from coevo.flows.studies.study_runs import StudyLock
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
SETTINGS = ["iterations=2", *SMALL, "warmstart.steps=20", "warmstart.probe_every=20"]
STUDY = ENTRIES | {"settings": SETTINGS}


@pytest.fixture(scope="module")
def own(tmp_path_factory, warmstarts, prefect_url):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_API_URL", prefect_url)
        yield share(warmstarts, tmp_path_factory.mktemp("studies") / "workspace")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    stored_study(STUDY, "test")
    path = tmp_path_factory.mktemp("study") / "entries.yaml"
    path.write_text(json.dumps(STUDY))
    return str(path)


def killed(study, workspace, kill):
    done = coevo("ablate", study, workspace=workspace, kill=kill)
    assert done.returncode == -signal.SIGKILL, f"{kill}: not reached: {done.stderr}"
    return [revisions(workspace, run) for run in RUNS]


@pytest.mark.soak
def test_a_killed_study_continues_to_the_states_of_ordinary_runs(study, own, tmp_path):
    assert killed(study, own, "coevo.lineage.lineage:write_manifest@2+") == [1, 0]
    assert killed(study, own, "coevo.lineage.lineage:write_manifest@4") == [3, 1]
    done = coevo("ablate", study, "--json", workspace=own)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["summary"].startswith("2 of 2 runs are finished")
    assert [run["run"] for run in result["runs"]] == list(RUNS)

    for run, k in zip(RUNS, (4, 2), strict=True):
        plain = coevo(
            "run", "homerules-coevo-rl", *SETTINGS, "seed=1", f"bank.retrieval.k={k}", "--name", f"plain-{k}",
            workspace=own,
        )  # fmt: skip
        assert plain.returncode == 0, plain.stderr
        assert states(own, run) == states(own, f"plain-{k}")

    before = {run: states(own, run) for run in RUNS}
    again = coevo("ablate", study, workspace=own)
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[-1].startswith("2 of 2 runs are finished")
    assert {run: states(own, run) for run in RUNS} == before
    client = MlflowClient(f"sqlite:///{own / 'mlflow.db'}")
    (shown,) = client.search_runs([client.get_experiment_by_name("studies").experiment_id])
    assert (shown.info.run_name, shown.info.status) == ("entries", "FINISHED")
    assert all(run in shown.data.tags["mlflow.note.content"] for run in RUNS)

    # A metric that does not exist is named with the first run that lacks it; the others are played all the same.
    (tmp_path / "entries.yaml").write_text(json.dumps(STUDY | {"metrics": [{"name": "bank/sizes"}]}))
    misspelt = coevo("ablate", tmp_path / "entries.yaml", workspace=own)
    assert misspelt.returncode == 0, misspelt.stderr
    said = f"run {RUNS[0]!r} has no metric 'bank/sizes'. Did you mean 'bank/size'?"
    assert misspelt.stdout.index(f"warning: {said}") < misspelt.stdout.index(f"run 2 of 2: {RUNS[1]}")
    assert f"Not compared: {said}" in misspelt.stdout.splitlines()[-2]


def test_a_study_that_another_process_plays_is_refused_in_one_line(study, own):
    with writer_lock(StudyLock(Workspace(own), "entries")):
        done = coevo("ablate", study, workspace=own)
    assert done.returncode == 2
    assert done.stderr.startswith("coevo: run 'entries' is in use by process")
    assert done.stderr.count("\n") == 1
