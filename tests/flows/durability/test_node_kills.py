"""Nodes of a cluster that are killed or frozen in every stage of runs, which end in the states of an embedded one.

Simulators and the trainer's process run on two nodes; the head has no room for them. Each node is struck in its turn,
and another one joins before the next is.
"""

import os
import time
from pathlib import Path
from signal import SIGKILL, SIGSTOP

import pytest
from support import warm
from support.clusters import local_cluster
from support.families import command_of
from support.kill_at import REACHED, struck, taken
from support.runs import coevo, command, states

from coevo.models.trainer.trainer_launch import CHILD
from coevo.records.draws import generator, key
from coevo.utilities.processes import wait

pytestmark = [pytest.mark.full, pytest.mark.timeout(0)]
NODES, PER_RUN, ITERATIONS = 2, 4, 3
LONGEST_DELAY_S = 0.3
NOTICED_S = {SIGKILL: 5.0, SIGSTOP: 15.0}
STAGES = (
    "rollout",
    "update",
    "judge",
    "commit",
    "sample tasks",
    "gate episodes",
    "write candidates",
    "evaluate",
    "shape",
    "gate advantages",
    "admit",
    "publish",
    "gate panels",
    "advantage",
    "update statistics",
    "gate candidates",
)
"""Neighbours here are far apart in an iteration."""
ONCE = "gate panels"
TESTS = Path(__file__).parents[2]
RUN = (
    "run",
    "homerules-coevo-rl",
    f"iterations={ITERATIONS}",
    "seed=5",
    "warmstart.steps=20",
    "warmstart.probe_every=20",
    "warmstart.probe_tasks=8",
    "rollout.tasks=4",
    "rollout.group_size=4",
    "bank.admission.replays=2",
    "bank.admission.delta=-1.0",
    "evaluation.tasks=8",
    "evaluation.every=1",
    "evaluation.final_panels=[]",
    "env={type: 'support.simulators:Household'}",
    f"python_path=[{TESTS}]",
)
ON_CLUSTER = "placement={type: ray, startup_timeout: 900, pools: {environments: {}, trainer: {}}}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with local_cluster(tmp_path_factory.mktemp("ray"), cpus=0) as cluster:
        for _ in range(NODES):
            cluster.add(cpus=2)
        yield cluster


@pytest.fixture(scope="module")
def embedded(workspace):
    """States of a run without a cluster, but for its placement."""
    done = coevo(*RUN, "--name", "embedded", workspace=workspace)
    assert done.returncode == 0, done.stderr
    return unplaced(workspace, "embedded")


def unplaced(workspace, name):
    return [state | {"config": None, "config_hash": None} for state in states(workspace, name)]


def place(number):
    """Where the strike with this number falls: in a stage, at one of its visits, after a drawn delay."""
    stage, visit = STAGES[number % len(STAGES)], 1 + number // len(STAGES) % ITERATIONS
    delay = generator(key("nodes", number)).uniform(0, LONGEST_DELAY_S)
    return f"stage:{stage}@{1 if stage == ONCE else visit}~{delay:.3f}"


def noticed(cluster, since):
    """Seconds until the cluster has given up a node that was struck."""
    wait(lambda: len(cluster.join().nodes()) == NODES, 120)
    assert len(cluster.join().nodes()) == NODES
    return time.monotonic() - since


def deaths(cluster):
    """Reasons that the cluster gives for the ends of its nodes, latest last."""
    import ray  # takes a second, which the quick tests would wait for

    cluster.join()
    return [each["DeathReasonMessage"] for each in ray.nodes() if not each["Alive"]]


def strike(cluster, victims, number, how):
    """Strike a node of a run that waits at a place, and replace it; the seconds in which that was noticed."""
    assert len(cluster.join().nodes()) == NODES + 1, f"a node ended by itself: {deaths(cluster)}"
    node = cluster.nodes[-1 - number % NODES]
    what = "trainer and simulators" if any(CHILD in command_of(each) for each in cluster.family(node)) else "simulators"
    seconds = noticed(cluster, struck(victims, cluster.raylet(node).pid, how))
    node.process.stop()
    cluster.nodes.remove(node)
    cluster.add(cpus=2)
    return seconds, what


def struck_run(cluster, workspace, victims, numbers, how):
    """A run whose nodes are struck; the seconds in which each strike was noticed."""
    name, places = f"struck-{how.name}-{numbers[0]}", {place(number): number for number in numbers}
    line = command(*RUN, ON_CLUSTER, "--name", name, workspace=workspace)[1:]
    split = line.index("--")
    line[split:split] = [part for each in places for part in ("--strike", each)] + ["--victims", str(victims)]
    found = []
    environment = os.environ | {"RAY_ADDRESS": cluster.address}
    with warm.running(*line, environment=environment) as run:
        while places:
            wait(lambda: (victims / REACHED).exists() or run.poll() is not None, 600)
            assert run.poll() is None, f"not reached: {places}: {run.said()}; {deaths(cluster)}"
            reached = taken(victims / REACHED)
            seconds, what = strike(cluster, victims, places.pop(reached), how)
            found.append(seconds)
            print(f"{how.name} {reached:34} {what:22} noticed in {seconds:.1f} s", flush=True)
        assert run.wait(900) == 0, run.said()
    return name, found


@pytest.mark.parametrize(
    ("how", "count"),
    [
        (SIGKILL, 3),
        (SIGSTOP, 1),
        pytest.param(SIGKILL, 50, marks=pytest.mark.soak),
        pytest.param(SIGSTOP, 10, marks=pytest.mark.soak),
    ],
)
def test_a_run_loses_nothing_with_its_nodes(cluster, workspace, embedded, tmp_path, how, count):
    seconds = []
    for first in range(0, count, PER_RUN):
        numbers = range(first, min(first + PER_RUN, count))
        name, found = struck_run(cluster, workspace, tmp_path, numbers, how)
        assert unplaced(workspace, name) == embedded
        seconds += found
    print(f"{count} nodes, noticed in at most {max(seconds):.1f} s")
    assert max(seconds) <= NOTICED_S[how]
