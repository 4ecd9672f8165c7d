"""The workspace's Ray cluster: recorded nodes, with a small program in Ray's place, and a run on a real one."""

import json
import os
from pathlib import Path

import pytest
from support.runs import coevo, states

from coevo.configs.load.load import load_recipe
from coevo.flows.servers import ray_cluster
from coevo.flows.servers.daemon import down, recorded
from coevo.flows.servers.ray_cluster import cluster_down, cluster_nodes, cluster_up, use_cluster
from coevo.utilities.cluster import raylets
from coevo.utilities.errors import CoevoError

STARTS = 'import time; print("Ray runtime started.", flush=True); time.sleep(600)'
RECIPE = "homerules-coevo-rl"
TESTS = Path(__file__).parents[2]


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setattr(raylets, "START", STARTS)
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")  # restored at the end, whatever is set here
        os.environ.pop(name)
    yield tmp_path
    down(tmp_path)


def test_missing_nodes_are_started_and_all_are_stopped(workspace):
    assert [node.name for node in cluster_up(workspace, 1, 1, 60.0)] == ["ray"]
    assert [node.name for node in cluster_up(workspace, 3, 1, 60.0)] == ["ray", "ray-2", "ray-3"]
    first, second, third = cluster_nodes(workspace)
    assert {node.port for node in (second, third)} == {first.port}
    assert first.answers()
    second.stop()
    assert [node.name for node in cluster_up(workspace, 3, 1, 60.0)] == ["ray", "ray-3", "ray-2"]
    assert sorted(cluster_down(workspace)) == ["ray", "ray-2", "ray-3"]
    assert not any(node.runs() for node in (first, second, third))
    assert recorded(workspace) == []
    assert not (workspace / "ray" / "session").is_symlink()


def test_nodes_without_a_head_are_replaced_with_it(workspace):
    head, node = cluster_up(workspace, 2, 1, 60.0)
    head.stop()
    new, other = cluster_up(workspace, 2, 1, 60.0)
    assert not node.runs()
    assert (new.name, other.name) == ("ray", "ray-2")


def test_a_run_finds_the_cluster_of_its_workspace_and_a_secret_that_is_private(workspace):
    config = load_recipe(RECIPE, ["placement={type: ray, pools: {trainer: {}}}"])
    with pytest.raises(CoevoError, match=r"no Ray cluster of .* runs: start it with `coevo cluster up`, or set"):
        use_cluster(config, workspace)
    (head,) = cluster_up(workspace, 1, 1, 60.0)
    use_cluster(load_recipe(RECIPE), workspace)
    assert "RAY_ADDRESS" not in os.environ
    use_cluster(config, workspace)
    assert os.environ["RAY_ADDRESS"] == f"127.0.0.1:{head.port}"
    token = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
    assert token.stat().st_mode & 0o777 == 0o600
    assert len(token.read_text()) > 60
    os.environ["RAY_ADDRESS"] = "there:6379"
    use_cluster(config, workspace)
    assert os.environ["RAY_ADDRESS"] == "there:6379"


def test_a_start_that_fails_keeps_the_nodes_before_it(workspace, monkeypatch):
    def fails(*_):
        raise raylets.ClusterError("Ray's node-2 ended")

    monkeypatch.setattr(ray_cluster, "start_node", fails)
    with pytest.raises(CoevoError, match="node-2 ended"):
        cluster_up(workspace, 2, 1, 60.0)
    assert [node.name for node in cluster_nodes(workspace)] == ["ray"]


@pytest.mark.full
@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("servers_end")
def test_a_run_on_a_cluster_has_the_state_of_an_embedded_one(tmp_path):
    env = f"env={{type: 'support.simulators:Household', options: {{log: '{tmp_path / 'pids'}'}}}}"
    brief = ("iterations=2", "warmstart.steps=20", "warmstart.probe_every=20", "warmstart.probe_tasks=8", "seed=5")
    settings = (RECIPE, *brief, "evaluation.tasks=8", "evaluation.final_panels=[]", "rollout.tasks=4", env)
    settings += (f"python_path=[{TESTS}]",)
    on_ray = "placement={type: ray, startup_timeout: 120, pools: {environments: {}, trainer: {}}}"
    workspace = tmp_path / "workspace"
    try:
        done = coevo("cluster", "up", "--cpus", "2", "--seconds", "200", workspace=workspace)
        assert done.returncode == 0, done.stderr
        assert "has 1 node." in done.stdout
        done = coevo("cluster", "status", "--json", workspace=workspace)
        assert [(node["address"], node["cpus"]) for node in json.loads(done.stdout)] == [("127.0.0.1", 2.0)]
        done = coevo("run", *settings, on_ray, "--name", "there", workspace=workspace)
        assert done.returncode == 0, done.stderr
    finally:
        stopped = coevo("cluster", "down", workspace=workspace)
    assert stopped.stdout == "Stopped 1 of its nodes.\n"
    done = coevo("run", *settings, "--name", "here", workspace=workspace)
    assert done.returncode == 0, done.stderr
    placed = {"config": None, "config_hash": None}
    there, here = ([state | placed for state in states(workspace, name)] for name in ("there", "here"))
    assert there == here
    assert len(there) == 3
