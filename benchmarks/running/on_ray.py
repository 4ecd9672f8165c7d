"""A Ray cluster of this machine: starts, simulators that wait, the cost of a call, and nodes that are killed."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.bench import Bench, BenchResult
from benchmarks.command import reach
from coevo.configs.placement_config import EnvironmentPool
from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.base import Step
from coevo.envs.failures import EpisodeFailure
from coevo.envs.stateful.cluster_workers import ClusterWorkers
from coevo.envs.stateful.interface import Live
from coevo.envs.stateful.stateful_environment import StatefulEnvironment
from coevo.flows.servers.ray_cluster import cluster_address, cluster_down, cluster_nodes, cluster_up
from coevo.lineage.workspace import Workspace
from coevo.records.draws import Key, generator
from coevo.records.task import Panel, Task
from coevo.utilities.cluster.joined_cluster import joined, leave
from coevo.utilities.processes import Resources

STARTS, NODES, START_S = 5, 3, 120.0
"""Starts of a cluster, its nodes, and the limit of each attempt."""
WAIT_S, SPEEDUP = 0.3, 3.5
EPISODES, TURNS, ROUNDS, CPU_ROUNDS = 16, 4, 30, 300
MOST_MS, MOST_SHARE = 2.0, 0.03
RECIPE, LEGS, LEG = "homerules-coevo-rl", 3, 10
"""Recipe whose iterations are timed, and how many of them in how many turns."""
ON_RAY = "placement={type: ray, pools: {trainer: {}}}"


class DelayedDraw:
    """A live episode whose actions wait and then draw."""

    def __init__(self, key: Key, seconds: float) -> None:
        self._draws, self._seconds = generator(key), seconds

    def act(self, action: str) -> Step[Any]:
        """Wait, and draw a number."""
        time.sleep(self._seconds)
        return Step(None, f"{action} {self._draws.integers(1000)}", "", 0.0, False, False)

    def close(self) -> None:
        """Nothing is held."""


class DelayedDraws(StatefulEnvironment):
    """Episodes whose actions take ``seconds``, in one worker process per host."""

    name, version = "waiting", "1"
    panels = {}  # noqa: RUF012

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.simulator = SimulatorConfig(workers=1)

    def open(self, task: Task, key: Key) -> tuple[Live, str]:
        """An episode."""
        return DelayedDraw(key, self._seconds), "start"

    def sample(self, count: int, key: Key) -> list[Task]:
        """Tasks by number."""
        return [Task(self.name, "draw", f"draw {n}", "", "train", {"n": n}) for n in range(count)]

    def panel(self, name: str, size: int) -> Panel:
        """No panel has tasks."""
        return Panel(name, self.version, ())


def run(bench: Bench) -> None:
    """Measure what is missing and print the figures beside their targets."""
    root = bench.workspace.root  # one for all: a process keeps the token with which it joined a cluster
    root.mkdir(parents=True, exist_ok=True)
    found = bench.cell("starts", partial(starts, root))
    print(f"starts under the machine's load  {found['good']} of {found['tried']}, {found['seconds']} s (target 60 s)")
    found = bench.cell("waiting", partial(waiting, root))
    print(f"actions of 0.3 s, four hosts     {found['speedup']:.2f} x one (target {SPEEDUP})")
    found = bench.cell("call", partial(call, root))
    print(f"a call of one episode            {found['added_ms_one']:.2f} ms more than here (target {MOST_MS})")
    print(f"a call of {EPISODES} episodes            {found['added_ms_batch']:.2f} ms more than here")
    print(f"a call that does nothing         {found['bare_ms']:.2f} ms")
    print("  ms of processors that they add ", end="")
    print(", ".join(f"{found[name]:.2f}" for name in ("added_cpu_ms_one", "added_cpu_ms_batch", "bare_cpu_ms")))
    found = bench.cell("iteration", partial(iteration, bench.workspace))
    print(f"an iteration on Ray              {found['added']:+.1%} of one here (target {MOST_SHARE:.0%})")
    found = bench.cell("kills", partial(kills, root))
    print(f"nodes killed in a turn           {found['equal']} of {found['tried']} runs equal")


@contextmanager
def cluster(root: Path, nodes: int, cpus: int) -> Iterator[None]:
    """A cluster of a workspace."""
    try:
        cluster_up(root, nodes, cpus, START_S)
        cluster_address(root)
        yield
    finally:
        leave()
        cluster_down(root)


def starts(root: Path) -> BenchResult:
    """Starts of a cluster of three nodes, one after another."""
    seconds, failed = list[float](), list[str]()
    for _ in range(STARTS):
        since = time.monotonic()
        try:
            with cluster(root, NODES, 1):
                seconds.append(round(time.monotonic() - since, 1))
        except Exception as error:  # noqa: BLE001 - counted
            failed.append(str(error))
    return {"tried": STARTS, "good": len(seconds), "seconds": seconds, "failed": failed}


def placed(root: Path, env: DelayedDraws, per_node: int) -> DelayedDraws:
    """The environment with its simulators on the cluster, once all hosts are ready."""
    join = partial(joined, cluster_address(root), START_S)
    workers = ClusterWorkers(join, EnvironmentPool(per_node=per_node), START_S, env, env.simulator)
    env.workers = workers
    give_up = time.monotonic() + START_S
    played(env, per_node, 1)
    while len(workers.nodes()) < per_node and time.monotonic() < give_up:
        time.sleep(0.2)
    played(env, 4 * per_node, 1)  # every worker has started
    return env


def played(
    env: DelayedDraws, episodes: int, turns: int, before: Callable[[int], None] = lambda turn: None
) -> list[str]:
    """Observations of a batch of episodes; ``before`` is called with the number of each turn."""
    states = [state for state, _ in started(env.try_start(env.sample(episodes, Key(()))))]
    seen = list[str]()
    for turn in range(turns):
        before(turn)
        steps = started(env.try_step(states, [str(turn)] * episodes))
        seen += [step.observation for step in steps]
        states = [step.state for step in steps]
    env.release(states)
    return seen


def started(results: Sequence[Any]) -> list[Any]:
    """Results without failures."""
    assert not [each for each in results if isinstance(each, EpisodeFailure)]
    return list(results)


def seconds_of(work: Callable[[], object], rounds: int = 3) -> float:
    """Median seconds."""
    found = []
    for _ in range(rounds):
        since = time.perf_counter()
        work()
        found.append(time.perf_counter() - since)
    return median(found)


def waiting(root: Path) -> BenchResult:
    """Rollouts whose actions wait, on one host and on four."""
    seconds = {}
    with cluster(root, 1, 4):
        for hosts in (1, 4):
            with closing(placed(root, DelayedDraws(WAIT_S), hosts)) as env:
                seconds[hosts] = seconds_of(partial(played, env, EPISODES, TURNS))
    return {"seconds": {str(hosts): each for hosts, each in seconds.items()}, "speedup": seconds[1] / seconds[4]}


def call(root: Path) -> BenchResult:
    """Cost of a turn on the cluster beside one here, in turns, for one episode and for a batch; and of a bare call.

    ``cpu`` is time of processors, of this process and of all of the cluster: on a busy machine, a call mostly waits for
    one.
    """
    found: dict[str, float] = {}
    with (
        cluster(root, 1, 4),
        closing(DelayedDraws(0.0)) as here,
        closing(placed(root, DelayedDraws(0.0), 1)) as there,
    ):
        played(here, EPISODES, 1)
        for name, episodes in (("one", 1), ("batch", EPISODES)):
            turns = {"here": Turns(here, episodes), "there": Turns(there, episodes)}
            seconds = [{where: seconds_of(each.play, 1) for where, each in turns.items()} for _ in range(ROUNDS)]
            found |= {f"{where}_ms_{name}": 1000 * median(each[where] for each in seconds) for where in turns}
            found[f"added_ms_{name}"] = 1000 * median(each["there"] - each["here"] for each in seconds)
            cpu = {where: cpu_of(root, each.play) for where, each in turns.items()}
            found[f"added_cpu_ms_{name}"] = 1000 * (cpu["there"] - cpu["here"])
            for each in turns.values():
                each.end()
        bare = bare_call(root)
        found |= {"bare_ms": 1000 * seconds_of(bare, ROUNDS), "bare_cpu_ms": 1000 * cpu_of(root, bare)}
    return dict(found)


def cpu_of(root: Path, work: Callable[[], object]) -> float:
    """Seconds of processors that work takes, here and in all processes of the cluster."""
    before = cpu_so_far(root)
    for _ in range(CPU_ROUNDS):
        work()
    return (cpu_so_far(root) - before) / CPU_ROUNDS


def cpu_so_far(root: Path) -> float:
    """Seconds of processors of this process, its children and the cluster."""
    roots = [psutil.Process(), *(psutil.Process(node.pid) for node in cluster_nodes(root))]
    family = {each for one in roots for each in (one, *one.children(recursive=True))}
    times = [each.cpu_times() for each in family]
    return float(sum(each.user + each.system for each in times))


class Turns:
    """Live episodes of an environment, which are played turn by turn."""

    def __init__(self, env: DelayedDraws, episodes: int) -> None:
        self._env = env
        self._states = [state for state, _ in started(env.try_start(env.sample(episodes, Key(()))))]

    def play(self) -> None:
        """One turn of all."""
        self._states = [step.state for step in started(self._env.try_step(self._states, ["0"] * len(self._states)))]

    def end(self) -> None:
        """Close them."""
        self._env.release(self._states)


class Nothing:
    """Part of an actor that does nothing."""

    def nothing(self) -> None:
        """Return at once."""


def bare_call(root: Path) -> Callable[[], object]:
    """A call of an actor that does nothing, which is ready."""
    there, least = joined(cluster_address(root), START_S), Resources(0)
    actor = there.actor(f"{__name__}:{Nothing.__name__}", (), least, there.nodes()[0])
    assert actor.ready(START_S)
    return partial(actor.call, "nothing", seconds=START_S)


def iteration(workspace: Workspace) -> BenchResult:
    """Time of iterations whose update is on the cluster, beside the same ones without it, leg by leg in turns."""
    settings = {"here": (), "there": (ON_RAY,)}
    with cluster(workspace.root, 1, 2):
        for leg in range(LEGS):
            runs = {
                name: reach(workspace, name, RECIPE, (leg + 1) * LEG, ("evaluation.final_panels=[]", *each))
                for name, each in settings.items()
            }
    seconds = {name: [each.rates["cost/seconds/wall"] for each in run if each.revision] for name, run in runs.items()}
    ratios = [there / here for here, there in zip(seconds["here"], seconds["there"], strict=True)]
    return {"added": median(ratios) - 1, "iterations": len(ratios), **{f"{k}_s": sum(v) for k, v in seconds.items()}}


def kills(root: Path) -> BenchResult:
    """Rollouts in each turn of which, one after another, a node is killed; each is equal to one here."""
    with closing(DelayedDraws(0.0)) as here:
        expected = played(here, EPISODES, TURNS)
    equal, seconds = 0, list[float]()
    with cluster(root, 2, 1):
        for at in range(TURNS):
            node = cluster_up(root, 2, 1, START_S)[-1]
            with closing(placed(root, DelayedDraws(0.0), 1)) as env:

                def kill(turn: int, at: int = at, pid: int = node.pid) -> None:
                    if turn == at:
                        family = psutil.Process(pid).children(recursive=True)
                        next(each for each in family if each.name() == "raylet").kill()

                since = time.monotonic()
                equal += played(env, EPISODES, TURNS, kill) == expected
                seconds.append(round(time.monotonic() - since, 2))
            psutil.wait_procs([psutil.Process(node.pid)] if psutil.pid_exists(node.pid) else [], timeout=60)
    return {"tried": TURNS, "equal": equal, "seconds": seconds}
