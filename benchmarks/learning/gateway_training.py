"""An agent with its own loop, trained through the gateway, against the built-in loop: five worlds of HomeRules.

Both arms have one recipe, one seed and one number of iterations, each of which learns from as many episodes. All runs
start from one policy, which has been shown how to act in houses of other worlds. The agent
(``house_agent``) is a process of its own. In the end each plays the held-out panel: the built-in loop in the evaluation
of its last revision, the agent through a gateway in sessions of mode ``evaluation``.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import fmean

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.command import COMMAND, reach
from benchmarks.learning.house_agent import PANEL
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.records.intervals import student
from coevo.utilities.errors import CoevoError

RECIPE = "homerules-coevo-rl"
WORLDS = range(1, 6)
ITERATIONS = 8
TASKS, REPLICAS = 16, 8
SIZE = 128
"""Tasks of the panel."""
MARGIN = 0.05
"""Success that the agent may lack."""
START = ("seed=1", "env.world=1", "evaluation.tasks=8", "evaluation.final_panels=[]")
"""Settings of the run whose first policy all others start from."""
SETTINGS = (
    "warmstart=null",
    "evaluation.every=1000",
    f"evaluation.tasks={SIZE}",
    "evaluation.final_panels=[]",
    f"rollout.tasks={TASKS}",
    f"rollout.group_size={REPLICAS}",
)
LISTENS = re.compile(r"Gateway of \S+ at (http://\S+?)/s/SESSION/v1; its token is in (.+)$")


def run(bench: Bench) -> None:
    """Measure each world where it is missing, and print success and the difference."""
    cells: dict[str, list[BenchResult]] = {name: [] for name in ARMS}
    for world in WORLDS:
        for name, arm in ARMS.items():
            cells[name].append(bench.cell(f"{name}-{world}", partial(arm, bench, world)))
    report(cells)


def report(cells: dict[str, list[BenchResult]]) -> None:
    """Print success of both arms, and the difference with its interval."""
    built_in, agents = ([each["success"] for each in cells[name]] for name in ("built-in", "agent"))
    for name, found in (("built-in loop", built_in), ("agent through the gateway", agents)):
        print(f"{name:28}{' '.join(f'{each:.3f}' for each in found)}   mean {fmean(found):.3f}")
    print(f"agent minus built-in: {student(agents, built_in)} (at least {-MARGIN})")


def built_in(bench: Bench, world: int) -> BenchResult:
    """Success of the built-in loop, at the start and in the end."""
    history = reach(bench.workspace, f"built-in-{world}", RECIPE, ITERATIONS, settings(bench, world))
    return {**_evaluated(history), "success": history[-1].metrics[f"agent/success/{PANEL}"]}


def agent(bench: Bench, world: int) -> BenchResult:
    """Success of the agent in the end, and of its policy and bank in the built-in evaluation."""
    name, root = f"agent-{world}", str(bench.workspace.root)
    outcomes = f"rollout.gateway={{outcomes: {TASKS * REPLICAS}}}"
    start = ["run", RECIPE, "--name", name, f"iterations={ITERATIONS}", *settings(bench, world), outcomes]
    with _gateway([*start, "--workspace", root]) as (process, url, token):
        _agent("train", url, token, world, TASKS)
        if process.wait():
            raise CoevoError(f"{name} ended with exit code {process.returncode}: mend what it says above")
    with _gateway(["gateway", name, "--mode", "evaluation", "--workspace", root]) as (_, url, token):
        success = float(_agent("evaluate", url, token, world, SIZE))
    with Lineage.open(bench.workspace.existing(name).lineage, bench.workspace.cache) as lineage:
        history = lineage.history.log()
    used = sum(each.metrics["agent/sessions/used"] for each in history[1:])
    return {**_evaluated(history), "success": success, "sessions": used}


ARMS: dict[str, Callable[[Bench, int], BenchResult]] = {"built-in": built_in, "agent": agent}


def settings(bench: Bench, world: int) -> tuple[str, ...]:
    """Settings of both arms in a world."""
    policy = bench.workspace.root / "start"
    if not policy.exists():
        reach(bench.workspace, "start", RECIPE, 0, START)
        paths = bench.workspace.existing("start")
        with Lineage.open(paths.lineage, bench.workspace.cache) as lineage:
            lineage.artifacts.materialise(0, "policy", policy)
    start = f"policy={{type: pretrained, path: '{policy}', dtype: float32}}"
    return (*SETTINGS, start, f"seed={world}", f"env.world={world}")


def _evaluated(history: Sequence[Manifest]) -> BenchResult:
    start, end = history[0].metrics, history[-1].metrics
    panel = f"agent/success/{PANEL}"
    found = {"start": start[panel], "built_in_evaluation": end[panel], "bank": end["bank/size"]}
    return {**found, "iterations": history[-1].iteration}


@contextmanager
def _gateway(arguments: Sequence[str]) -> Iterator[tuple["subprocess.Popen[str]", str, str]]:
    """A command that listens, its address and the file of its token; it is ended with the block."""
    process = subprocess.Popen([*COMMAND, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = None
        while found is None and (line := process.stdout.readline()):
            found = LISTENS.search(line)
        if found is None:
            raise CoevoError(f"`coevo {' '.join(arguments)}` ended with exit code {process.wait()}")
        yield process, found[1], found[2].strip()
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate()


def _agent(what: str, url: str, token: str, world: int, tasks: int) -> str:
    line = [sys.executable, "-P", "-m", "benchmarks.learning.house_agent"]
    line += [what, url, token, str(world), str(tasks), str(REPLICAS)]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(line, cwd=ROOT, env=here, stdout=subprocess.PIPE, text=True, check=True).stdout
