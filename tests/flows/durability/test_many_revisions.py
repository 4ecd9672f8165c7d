"""A run of many revisions: an iteration costs no more at its end than at its beginning, and neither does reading it.

Seconds are those of processors, so that other programs of the machine do not count. ``make soak`` plays 1,000. The
policy succeeds so rarely that the bank stays small: ``python -m benchmarks scale`` has one that
grows with the revisions.
"""

import json
import os
import resource
import time
from itertools import pairwise
from statistics import fmean

import psutil
import pytest
from scipy.stats import theilslopes
from support.families import command_of
from support.runs import ROOT, coevo, command

from coevo.flows.servers.daemon import down, recorded
from coevo.models.trainer.trainer_launch import CHILD

pytestmark = [pytest.mark.full, pytest.mark.timeout(0)]
NAME, SPANS = "many", 12
WITHIN = 0.05
"""Growth from the first sample to the last that no slope makes significant enough."""
READING = {"log": (NAME,), "report": (NAME,), "fsck": (NAME,), "gc": ()}
RUN = (
    "run",
    "homerules-coevo-rl",
    "seed=5",
    "policy.hidden_size=16",
    "policy.layers=1",
    "warmstart.steps=2",
    "warmstart.probe_every=2",
    "warmstart.probe_tasks=8",
    "rollout.tasks=2",
    "rollout.group_size=2",
    "bank.admission.replays=1",
    "bank.admission.delta=-1.0",
    "bank.retirement.capacity=8",
    "bank.retirement.entries=0",
    "evaluation.tasks=8",
    "evaluation.every=20",
    "evaluation.final_panels=[]",
)


@pytest.fixture
def place(tmp_path):
    """A workspace of its own: its servers have played no other run."""
    yield tmp_path / "workspace"
    down(tmp_path / "workspace")


def revision(place):
    """Number of the revision in the making."""
    path = place / "runs" / NAME / "status.json"
    return json.loads(path.read_text())["revision"] if path.exists() else 0


def stored(place):
    """Bytes of the workspace, but for logs of servers."""
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file() and path.suffix != ".log")


def processes(run, place):
    """Processes of a run by their part; it starts some of them after a while."""
    (server,) = (server for server in recorded(place) if server.name == "prefect")
    trainers = [each for each in psutil.Process(run.pid).children(recursive=True) if CHILD in command_of(each)]
    (trainer,) = trainers
    return {"run": psutil.Process(run.pid), "trainer": trainer, "server": psutil.Process(server.pid)}


def sampled(run, place):
    """Figures of a run now: seconds and memory of each process, its open files, and all bytes on disk."""
    found = {"bytes of a revision": stored(place)}
    for part, process in processes(run, place).items():
        with process.oneshot():
            times = process.cpu_times()
            found[f"seconds of an iteration, {part}"] = times.user + times.system
            found[f"memory, {part}"] = process.memory_info().rss
            found[f"open files, {part}"] = process.num_fds()
    return found


def samples(run, place, marks):
    """Figures at each of the revisions, with the revision at which they were in fact taken."""
    found = []
    for mark in marks:
        while (at := revision(place)) < mark:
            assert run.poll() is None, f"it ended at revision {at}"
            time.sleep(0.2)
        found.append((at, sampled(run, place)))
    return found


def each_revision(found):
    """Figures in the order of revisions: what adds up as a difference by revision, the rest as it is."""
    series = {}
    for (before, old), (after, new) in pairwise(found):
        for name, value in new.items():
            added = name.startswith(("bytes", "seconds"))
            series.setdefault(name, []).append((value - old[name]) / (after - before) if added else value)
    return series


def grows(values):
    """Return True if a figure grows significantly, by more than is allowed within all samples."""
    slope, _, low, _ = theilslopes(values, alpha=0.95)
    return low > 0 and slope * (len(values) - 1) > WITHIN * fmean(values[: len(values) // 2])


def reading(place):
    """Seconds of processors of the commands that read the run."""
    found = {}
    for name, arguments in READING.items():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with psutil.Popen(command(name, *arguments, workspace=place), cwd=ROOT, env=os.environ) as process:
            assert process.wait(3000) == 0, name
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[name] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found


@pytest.mark.parametrize(("few", "many"), [(6, 30), pytest.param(200, 1000, marks=pytest.mark.soak)])
def test_nothing_grows_with_revisions(place, few, many):
    done = coevo(*RUN, f"iterations={few}", "--name", NAME, workspace=place)
    assert done.returncode == 0, done.stderr
    early = reading(place)
    marks = [few + 2 + (many - few - 3) * span // SPANS for span in range(SPANS + 1)]
    line = command("resume", NAME, "--iterations", str(many), workspace=place)
    with psutil.Popen(line, cwd=ROOT, env=os.environ, process_group=0) as run:
        try:
            found = samples(run, place, marks)
            assert run.wait(900) == 0
        finally:
            if run.poll() is None:
                run.kill()
    late, series = reading(place), each_revision(found)
    for name, values in series.items():
        print(f"{name:36} {values[0]:14.4f} {values[len(values) // 2]:14.4f} {values[-1]:14.4f}")
    print(", ".join(f"{name} {late[name]:.1f} s, {late[name] / early[name]:.2f} times" for name in READING))
    assert not {name: values for name, values in series.items() if grows(values)}
    assert max(late[name] / early[name] for name in READING) <= 2
