"""Simulators on the nodes of a real Ray cluster: equal to local ones, also when nodes die, freeze and join."""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest
from support.clusters import local_cluster
from support.families import connections_of
from support.simulators import FailingSums, Sums

from coevo.configs.placement_config import EnvironmentPool
from coevo.envs.failures import EpisodeFailure
from coevo.envs.stateful.cluster_workers import ClusterWorkers
from coevo.utilities.cluster.joined_cluster import ON_LOOPBACK, ClusterError
from coevo.utilities.processes import Resources, wait

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
EPISODES, TURNS = 6, 5
UP_S = 60.0
"""Limit of a start of three nodes."""
LIMITS = {"workers": 1, "act_seconds": 60.0}
JOINS = """
import sys
from coevo.utilities.cluster.joined_cluster import joined
from coevo.utilities.errors import CoevoError
try:
    print(len(joined(sys.argv[1], 60.0).nodes()), "nodes")
except CoevoError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with local_cluster(tmp_path_factory.mktemp("ray")) as cluster:
        cluster.add()
        yield cluster


@pytest.fixture
def on(cluster):
    """Gives an environment workers on the cluster; closes it at the end."""
    opened = []

    def place(env, **pool):
        env.workers = ClusterWorkers(cluster.join, EnvironmentPool(**pool), 120.0, env, env.simulator)
        opened.append(env)
        return env

    yield place
    for env in opened:
        env.close()


def played(env, at=None, event=lambda: None):
    """Observations and rewards of a batch of episodes; ``event`` happens before turn ``at``."""
    tasks = [env.task(f"t{number}", "train") for number in range(EPISODES)]
    states, log = [state for state, _ in env.try_start(tasks)], []
    for turn in range(TURNS):
        if turn == at:
            event()
        steps = env.try_step(states, [str(turn)] * EPISODES)
        assert not [step for step in steps if isinstance(step, EpisodeFailure)]
        log.append([(step.observation, step.reward) for step in steps])
        states = [step.state for step in steps]
    env.release(states)
    return log


@pytest.fixture(scope="module")
def local():
    env = Sums(target=500, limits=LIMITS)
    log = played(env)
    env.close()
    return log


def sums():
    return Sums(target=500, limits=LIMITS)


def test_every_socket_is_on_loopback(cluster):
    cluster.join()
    processes = [each for node in (cluster.head, *cluster.nodes) for each in cluster.family(node)]
    found = [c.laddr.ip for c in connections_of([*processes, psutil.Process()]) if c.laddr]
    assert found
    assert {ip.removeprefix("::ffff:") for ip in found} <= {"127.0.0.1", "::1"}


def test_no_port_tells_anything_to_a_caller_without_the_token(cluster):
    cluster.join()
    processes = [each for node in (cluster.head, *cluster.nodes) for each in cluster.family(node)]
    found = [c for each in processes for c in each.net_connections("tcp") if c.status == "LISTEN"]
    assert len(found) > 4
    for port in {each.laddr.port for each in found}:
        asking = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            asking.request("GET", "/metrics")
            assert asking.getresponse().status in (401, 403), port
        except (http.client.HTTPException, OSError):
            pass  # no HTTP, or none of version 1
        finally:
            asking.close()
    assert cluster.files.session.resolve().stat().st_mode & 0o077 == 0


def test_a_caller_without_the_token_is_refused_in_one_line(cluster, tmp_path):
    assert cluster.files.token.stat().st_mode & 0o077 == 0
    (tmp_path / "wrong").write_text("0123456789abcdef:" + "6" * 64)
    environment = os.environ | {"RAY_AUTH_TOKEN_PATH": str(tmp_path / "wrong"), "PYTHONPATH": os.pathsep.join(sys.path)}
    said = said_by(JOINS, cluster, environment)
    assert "token" in said, said
    assert said.count("\n") == 1


def said_by(program, cluster, environment):
    """Output of a program that is given the cluster's address."""
    command = [sys.executable, "-P", "-c", program, cluster.address]
    return subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=300).stdout


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("import ray\n", "2 nodes\n"),
        (
            "import sys, ray\nray.init(sys.argv[1], _node_ip_address='127.0.0.1', logging_level='error')\n",
            "this process has joined a Ray cluster by itself: call ray.shutdown() first\n",
        ),
    ],
    ids=["imports Ray", "joins by itself"],
)
def test_a_program_that_uses_ray_joins_or_is_told_why_not(cluster, before, said):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    if "init" in before:
        environment |= ON_LOOPBACK
    assert said_by(before + JOINS, cluster, environment) == said


def test_what_the_cluster_lacks_is_one_line(cluster):
    with pytest.raises(ClusterError, match=r"pool asks for 64 CPU, 2 GPU of a node, and 127\.0\.0\.1 has 1 CPU;"):
        cluster.join().suited(Resources(64, 2), "pool")


def test_hosts_that_are_late_on_a_node_with_room_are_one_line_that_says_so(cluster, on):
    env = on(sums())
    env.workers._seconds = 0.0
    with pytest.raises(
        ClusterError, match=r"no process with it was ready \(a node with room was too busy\) in .*=0 s: "
    ):
        env.start(env.task("t", "train"))


def test_episodes_are_equal_to_local_ones_on_all_nodes(cluster, on, local):
    env = on(sums())
    assert played(env) == local
    wait(lambda: len(env.workers._placed()) == 2, 300)
    assert played(env) == local
    assert len(env.workers.nodes()) == 2


def test_a_host_has_the_priority_of_its_node(cluster, on):
    env = on(sums())
    played(env)
    (priority,) = {psutil.Process(host.actor.pid).nice() for host in env.workers._ready()}
    assert priority == cluster.raylet(cluster.head).nice()


def test_a_simulator_that_fails_is_blamed_as_a_local_one(on):
    env = on(FailingSums(limits=LIMITS))
    state, _ = env.start(env.task("t", "train"))
    for action, reason in (("raise", "exception"), ("exit", "crash"), ("text", "invalid")):
        (failure,) = env.try_step([state], [action])
        assert isinstance(failure, EpisodeFailure)
        assert failure.kind == reason
    (step,) = env.try_step([state], ["1"])
    assert not isinstance(step, EpisodeFailure)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_node_that_dies_or_freezes_loses_nothing_and_one_that_joins_is_used(cluster, on, local, number, capfd):
    env = on(sums())
    played(env)
    wait(lambda: len(env.workers._placed()) == 2, 300)
    node = cluster.nodes[-1]
    raylet = cluster.raylet(node)
    assert played(env, 2, lambda: raylet.send_signal(number)) == local
    wait(lambda: len(cluster.join().nodes()) == 1, 120)
    assert len(cluster.join().nodes()) == 1
    assert capfd.readouterr() == ("", "")
    node.process.stop()
    cluster.add()
    assert played(env) == local
    wait(lambda: len(env.workers._placed()) == 2, 300)
    assert played(env) == local
    assert len(env.workers.nodes()) == 2


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_fifty_nodes_that_are_killed_lose_no_episode(cluster, on, local):
    for number in range(50):
        env = on(sums())
        played(env)
        wait(lambda env=env: len(env.workers._placed()) == 2, 300)
        node = cluster.nodes[-1]
        assert played(env, number % TURNS, cluster.raylet(node).kill) == local
        env.close()
        node.process.stop()
        cluster.add()


@contextmanager
def computing(count):
    """So many processes that compute within the block, and end with this process at the latest."""
    command = [sys.executable, "-c", f"import os\nwhile os.getppid() == {os.getpid()}: pass"]
    busy = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def start(folder):
    """Start three nodes, and stop them: the seconds until all were up, or the line that says why they were not."""
    folder.mkdir()
    since = time.monotonic()
    try:
        with local_cluster(folder) as started:
            for _ in range(2):
                started.add()
            seconds = time.monotonic() - since
            assert len(started.join().nodes()) == 3
            return seconds
    except ClusterError as error:
        return str(error)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("starts", "busy"), [(2, 2), pytest.param(20, 4, marks=pytest.mark.soak)])
def test_clusters_of_three_nodes_start_on_busy_cores_or_say_why_not(tmp_path, starts, busy):
    with computing(min(busy, 2 * os.cpu_count())):
        found = [start(tmp_path / str(number)) for number in range(starts)]
    said = [each for each in found if isinstance(each, str)]
    up = [each for each in found if not isinstance(each, str)]
    print(f"{len(up)} of {starts} up, in {', '.join(f'{each:.1f}' for each in up)} s", *said, sep="\n")
    assert not [line for line in said if not re.fullmatch(r"Ray's (head|node-\d), started twice, .*\.log.*", line)]
    assert up
    assert max(up) <= UP_S
