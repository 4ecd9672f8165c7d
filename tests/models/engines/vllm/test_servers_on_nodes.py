"""vLLM servers on the nodes of a real Ray cluster, with a small program in the place of vLLM."""

import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import save_file
from support.clusters import local_cluster
from support.vllm_standin import PROBE, PROMPT, SERVER
from support.weights import known

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm.engine_launch import POOL, EngineLaunch, ServerPlaces
from coevo.models.engines.vllm.replica import Replica
from coevo.models.engines.vllm.vllm_server import ServerSettings
from coevo.utilities.cluster.joined_cluster import ClusterError
from coevo.utilities.cluster.node_places import ClusterLauncher
from coevo.utilities.processes import Launch, Resources

pytestmark = [pytest.mark.full, pytest.mark.timeout(3000)]
SECONDS = 240.0
CONFIG = {"type": "vllm", "startup_timeout": 600.0, "timeout": 120.0}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with local_cluster(tmp_path_factory.mktemp("ray")) as cluster:
        cluster.add()
        yield cluster


@pytest.fixture
def launch(cluster, tmp_path):
    """Start of servers on the cluster, whose interpreter runs the program whatever it is asked to run."""
    program, python = tmp_path / "server.py", tmp_path / "python"
    program.write_text(SERVER)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {program} {tmp_path / "asked"} "$@"\n')
    python.chmod(0o700)
    places = ServerPlaces(ClusterLauncher(cluster.join, SECONDS), Resources(gpus=0))
    return EngineLaunch(VllmEngineConfig(**CONFIG, python=str(python)), "key", tmp_path / "logs", places)


def serving(weights):
    return ServerSettings(str(weights.directory), 0, 64, gpus=0)


def gone(processes):
    return not psutil.wait_procs(processes, timeout=120)[1]


def files_of(folder: Path):
    return sorted(each.name for each in folder.iterdir())


def test_a_server_has_its_weights_without_a_shared_folder_and_ends_with_its_place(launch, tmp_path):
    first, second = tmp_path / "one", tmp_path / "two"
    for folder in (first, second):
        folder.mkdir()
        save_file({"weight": np.ones(4, np.float32)}, folder / f"{folder.name}.safetensors")
    weights = known(first, "", PROBE)
    with closing(Replica(launch.config, weights, launch.server(0, serving), "", "key")) as replica:
        assert replica.complete(PROMPT)[0]["token_ids"] == [1]
        server = replica.server
        there = server.bring(first)
        assert files_of(there) == ["one.safetensors"]
        assert there.parent.name.startswith("coevo-place-")
        later = server.bring(second)
        assert files_of(later) == ["two.safetensors"]
        assert not there.exists()
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        assert (tmp_path / "logs" / "server-0.log").exists()
    assert gone(family)
    until = time.monotonic() + 120
    while later.parent.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not later.parent.exists()


def test_a_server_whose_node_dies_is_started_on_another_one(cluster, launch, tmp_path):
    weights = known(tmp_path, "", PROBE)
    with closing(Replica(launch.config, weights, launch.server(0, serving), "", "key")) as replica:
        replica.complete(PROMPT)
        node = next(each for each in (*cluster.nodes, cluster.head) if replica.server.pid in pids(cluster, each))
        if node is cluster.head:  # which is not replaced: its server ends as that of any process does
            psutil.Process(replica.server.pid).kill()
        else:
            cluster.raylet(node).kill()
        assert replica.complete(PROMPT)[0]["token_ids"] == [1]


def pids(cluster, node):
    return {each.pid for each in cluster.family(node)}


def test_a_command_that_ends_at_once_says_why_with_its_node(launch, tmp_path):
    (place,) = launch.places.launcher.places(1, Resources(), POOL)
    log = tmp_path / "log"
    command = ["{python}", "-c", "import sys; print('no memory on', sys.argv[1]); sys.exit(3)", "{host}:{port}"]
    process = place.start(Launch(command, {}, log, mark="server-7"))
    assert process.status() == 3
    assert log.read_text() == f"[server-7 on 127.0.0.1] no memory on {process.address}\n"
    place.end()


def test_room_that_the_cluster_lacks_is_one_line_and_no_wait_without_end(cluster):
    launcher = ClusterLauncher(cluster.join, 5.0)
    with pytest.raises(ClusterError, match=r"engines asks for 64 CPU, 2 GPU of a node, and 127\.0\.0\.1 has 1 CPU"):
        launcher.places(1, Resources(64, 2), POOL)
    with pytest.raises(ClusterError, match=r"for each of 9 processes, asks .* none had it in .*=5 s: 127.* CPU free"):
        launcher.places(9, Resources(), POOL)
