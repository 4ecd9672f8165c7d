"""A study on nodes without a shared folder: its runs are ordinary ones, also where a node dies."""

import threading
from pathlib import Path

import pytest
from support.near_cluster import NearCluster
from support.runs import SMALL, coevo, states

from coevo.configs.load.load_study import stored_study
from coevo.flows.studies.cluster_runs import ClusterRuns, play_on_cluster
from coevo.flows.studies.study_runs import runs_of
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.reporter import Silent, reporting_to
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import ONE_CORE, wait

SETTINGS = ["iterations=2", "rollout.engine.threads=1", *SMALL, "warmstart.steps=20", "warmstart.probe_every=20"]
STUDY = {
    "name": "entries",
    "paper": "a guess",
    "finding": "Four entries are better than two.",
    "recipe": "homerules-coevo-rl",
    "settings": SETTINGS,
    "arms": [
        {"name": "four", "settings": ["bank.retrieval.k=4"]},
        {"name": "two", "expected": "worse", "settings": ["bank.retrieval.k=2"]},
    ],
    "seeds": 1,
    "metrics": [{"name": "agent/success/seen-houses"}],
}
RUNS = ("entries-four-s1", "entries-two-s1")


class Warned(Silent):
    """Keeps what is said."""

    def __init__(self):
        self.said = []

    def warn(self, text):
        self.said.append(text)


@pytest.fixture
def cluster():
    made = NearCluster(room=2)
    yield made
    for actor in made.actors:
        actor.end()


def play(cluster, root, remote):
    study = stored_study(STUDY, "test")
    return ClusterRuns(study, Workspace(root), str(remote), lambda: cluster, ONE_CORE).play(runs_of(study))


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_runs_on_nodes_one_of_which_dies_have_the_states_of_ordinary_ones(cluster, prefect_url, tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    root, remote, warned = tmp_path / "workspace", tmp_path / "remote", Warned()

    def lose():
        wait(lambda: (remote / "runs" / RUNS[0]).is_dir() or (remote / "runs" / RUNS[1]).is_dir(), 900)
        cluster.actors[0].lose()

    loser = threading.Thread(target=lose)
    loser.start()
    with reporting_to(warned):
        assert play(cluster, root, remote) == 0
    loser.join()
    assert [text.partition(": ")[2] for text in warned.said] == [
        "its process has ended with its node, and is started again"
    ]
    folders = [Path(actor.agent.call("folder").value) for actor in cluster.actors]
    wait(lambda: not any(map(Path.exists, folders)), 60)
    assert not any(map(Path.exists, folders))
    for run, k in zip(RUNS, (4, 2), strict=True):
        arguments = ("run", "homerules-coevo-rl", *SETTINGS, "seed=1", f"bank.retrieval.k={k}", "--name", f"plain-{k}")
        plain = coevo(*arguments, workspace=tmp_path / "plain")
        assert plain.returncode == 0, plain.stderr
        assert states(root, run) == states(tmp_path / "plain", f"plain-{k}")
    begun = len(cluster.actors)
    assert play(cluster, root, remote) == 0
    assert len(cluster.actors) == begun  # nothing was left to play


def test_runs_that_cost_seconds_are_not_compared_across_nodes(tmp_path):
    matched = {**STUDY["arms"][1], "matches": {"arm": "four", "by": "seconds"}}
    study = stored_study({**STUDY, "arms": [STUDY["arms"][0], matched]}, "test")
    with pytest.raises(CoevoError, match="takes as many seconds as four, and nodes differ: leave --cluster out"):
        play_on_cluster(study, Workspace(tmp_path), "127.0.0.1:1", str(tmp_path / "remote"), ONE_CORE)
