"""A study on nodes without a shared folder: its runs are ordinary ones, also where a node dies."""

import re
import threading
from pathlib import Path

import pytest
from support import small_run
from support.near_cluster import near_cluster
from support.runs import SMALL, coevo, states
from support.two_arms import ENTRIES, RUNS

from coevo.configs.load.load_study import stored_study
from coevo.flows.remote_run import at_remote
from coevo.flows.studies import cluster_runs
from coevo.flows.studies.cluster_runs import ORDER, ClusterRuns, main, order_of, play_on_cluster
from coevo.flows.studies.study_runs import runs_of
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.reporter import Silent, reporting_to
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import ONE_CORE, wait

SETTINGS = ["iterations=2", "rollout.engine.threads=1", *SMALL, "warmstart.steps=20", "warmstart.probe_every=20"]
STUDY = ENTRIES | {"settings": SETTINGS}


class Warned(Silent):
    """Keeps what is said."""

    def __init__(self):
        self.said = []

    def warn(self, text):
        self.said.append(text)


@pytest.fixture
def cluster():
    with near_cluster(2) as made:
        yield made


@pytest.fixture
def ordered(monkeypatch):
    """Orders to nodes that end well, and leave nothing at the remote."""
    found = []

    def attempt(self, order):
        found.append(order)
        return 0

    monkeypatch.setattr(ClusterRuns, "_attempt", attempt)
    return found


def play(cluster, root, remote, count=2):
    study = stored_study(STUDY, "test")
    return ClusterRuns(study, Workspace(root), str(remote), lambda: cluster, ONE_CORE).play(runs_of(study)[:count])


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_runs_on_nodes_one_of_which_dies_have_the_states_of_ordinary_ones(cluster, prefect_url, tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    root, remote, warned, over = tmp_path / "workspace", tmp_path / "remote", Warned(), threading.Event()

    def is_sent():
        return any((remote / "runs" / run).is_dir() for run in RUNS)

    def lose():
        wait(lambda: is_sent() or over.is_set(), 900)
        assert is_sent()
        cluster.actors[0].lose()

    loser = threading.Thread(target=lose, daemon=True)
    loser.start()
    try:
        with reporting_to(warned):
            assert play(cluster, root, remote) == 0
    finally:
        over.set()
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


def test_runs_that_do_not_arrive_are_played_once_and_their_remote_is_absolute(cluster, ordered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    remote = str(tmp_path / "there")
    said = f"has ended on its node, and at --remote {re.escape(remote)} 2 of its iterations are missing: name a place"
    with pytest.raises(CoevoError, match=said):
        play(cluster, tmp_path / "workspace", "there", count=1)
    assert [(order.run, order.remote) for order in ordered] == [(RUNS[0], remote)]
    monkeypatch.setenv("HOME", str(tmp_path))
    for typed, sent in (("~/x", str(tmp_path / "x")), ("/x", "/x"), ("s3://a/b", "s3://a/b")):
        made = ClusterRuns(stored_study(STUDY, "test"), Workspace(tmp_path / "w"), typed, lambda: cluster, ONE_CORE)
        assert made._remote == sent


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """A remote that has another variant of the first run, which nobody may play."""
    remote, name = str(tmp_path / "remote"), RUNS[0]
    small_run.build(tmp_path / "earlier", name, ["iterations=7"])
    with at_remote(Workspace(tmp_path / "earlier"), name, remote):
        pass
    monkeypatch.setattr(cluster_runs, "play", None)
    return remote


def test_another_run_of_the_same_name_at_the_remote_is_refused_before_it_is_played(cluster, ordered, earlier, tmp_path):
    with pytest.raises(CoevoError, match=f"run '{RUNS[0]}' holds another configuration: .* another name with --name"):
        play(cluster, tmp_path / "workspace", earlier, count=1)
    assert not ordered


def test_a_node_refuses_another_run_of_the_same_name(earlier, tmp_path, monkeypatch, capsys):
    path = tmp_path / "order.json"
    path.write_bytes(ORDER.dump_json(order_of(runs_of(stored_study(STUDY, "test"))[0], earlier)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert main(str(path)) == 2
    assert "holds another configuration" in capsys.readouterr().err


def test_a_node_plays_an_arm_as_the_command_resolved_it(monkeypatch):
    pairing = ("alfworld", "coevo-rl", "qwen3-0.6b")
    study = stored_study({**STUDY, "settings": [], "arms": [{**arm, "pairing": pairing} for arm in STUDY["arms"]]}, "t")
    monkeypatch.setattr("coevo.models.capacity.devices.gpus_here", lambda: 1)
    sent = runs_of(study)
    stored = [ORDER.dump_json(order_of(each, "/x")) for each in sent]
    monkeypatch.setattr("coevo.models.capacity.devices.gpus_here", lambda: 0)
    assert [ORDER.validate_json(each).study_run() for each in stored] == sent
    assert [each.config.rollout.engine.type for each in (sent[0], runs_of(study)[0])] == ["vllm", "transformers"]


@pytest.mark.parametrize("threads", [[], ["rollout.engine.threads=1"]])
def test_a_node_chooses_the_threads_that_the_study_leaves_open(threads):
    settings = [each for each in SETTINGS if "threads" not in each] + threads
    each = runs_of(stored_study({**STUDY, "settings": settings}, "test"))[0]
    there = ORDER.validate_json(ORDER.dump_json(order_of(each, "/x"))).study_run()
    assert there == each
    assert ("threads" in there.config.rollout.engine.model_fields_set) == bool(threads)


def test_runs_that_cost_seconds_are_not_compared_across_nodes(tmp_path):
    matched = {**STUDY["arms"][1], "matches": {"arm": "four", "by": "seconds"}}
    study = stored_study({**STUDY, "arms": [STUDY["arms"][0], matched]}, "test")
    with pytest.raises(CoevoError, match="takes as many seconds as four, and nodes differ: leave --cluster out"):
        play_on_cluster(study, Workspace(tmp_path), "127.0.0.1:1", str(tmp_path / "remote"), ONE_CORE)
