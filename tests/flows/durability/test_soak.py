"""Kills at random moments of whole runs: whatever they hit, each run ends in the states of an undisturbed one.

Every other kill falls anywhere in a process's life; the others fall within a drawn stage, so that short ones get
theirs. Each run is killed a few times, then let finish and judged; ``make soak`` continues with the next one where it
was stopped, as long as the code is the same.
"""

import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest
from support import warm
from support.kill_at import AND, now
from support.runs import ROOT, SMALL, coevo, command, published, revisions, states

from coevo.lineage.revision.code_version import code_revision
from coevo.records.draws import generator, key

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]
KILLS = int(os.environ.get("COEVO_SOAK_KILLS", "200"))
PER_RUN = 5
BATCH = 8
"""Runs that are begun before the first of them is waited for."""
LEAST = 3
"""Kills that every stage gets."""
ITERATIONS = 4
RUN = ("run", "homerules-coevo-rl", f"iterations={ITERATIONS}", "seed=5", *SMALL)
STAGES = (
    "gate panels",
    "sample tasks",
    "rollout",
    "gate episodes",
    "shape",
    "advantage",
    "gate advantages",
    "update",
    "update statistics",
    "write candidates",
    "gate candidates",
    "judge",
    "admit",
    "evaluate",
    "commit",
    "publish",
)
LENGTH = "seconds"
"""File with the processor time that the undisturbed run took, start and end included."""
PLACE = ROOT / "workspace" / "soak" / code_revision()[:12]


@pytest.fixture(scope="module")
def workspace():
    """Kept between sessions: a run that was judged is not repeated."""
    PLACE.mkdir(parents=True, exist_ok=True)
    yield PLACE
    coevo("down", workspace=PLACE)


@pytest.fixture(scope="module")
def untouched(workspace):
    """States of a run that nothing disturbed; its length is left in a file, without the warm start that all share."""
    if not (workspace / LENGTH).exists():
        warmed = coevo(*RUN, "iterations=0", "--name", "warmed", workspace=workspace)
        assert warmed.returncode == 0, warmed.stderr
        with begun(*RUN, "--name", "untouched", workspace=workspace) as process:
            spent = ended_after(process, math.inf)
            assert process.poll() == 0, process.said()
        (workspace / LENGTH).write_text(f"{spent:.1f}")
    return states(workspace, "untouched")


def begun(*arguments, **how):
    """A command that runs."""
    _, *line = command(*arguments, **how)
    return warm.running(*line, environment=dict(os.environ))


def ended_after(process, limit):
    """Wait until a process ends or has used so many seconds of processor time, however loaded the machine is; what it
    had used."""
    spent = 0.0
    while process.poll() is None and spent < limit:
        time.sleep(0.05)
        with suppress(psutil.NoSuchProcess):
            times = psutil.Process(process.pid).cpu_times()
            spent = max(spent, times.user + times.system)
    return spent


def seconds_of(workspace):
    """Longest time of each stage in the undisturbed run."""
    lineage = workspace / "runs" / "untouched" / "lineage"
    text = subprocess.run(["git", "log", "-p", "--format="], cwd=lineage, capture_output=True, text=True, check=True)
    found = {}
    for line in text.stdout.splitlines():
        name, _, value = line.removeprefix("+").strip().rstrip(",").partition('": ')
        if line.startswith("+") and name.startswith('"cost/seconds/'):
            stage = name.removeprefix('"cost/seconds/')
            found[stage] = max(found.get(stage, 0.0), float(value))
    return found


def moment(number, seconds, length):
    """Where the kill with this number falls: in a stage, as ``kill_at`` writes it, or at some second of the processor
    time."""
    draw = generator(key("soak", number))
    if number % 2:
        return None, draw.uniform(0, length)
    stage = STAGES[number // 2 % len(STAGES)]
    visit = 1 if stage in ("gate panels", "evaluate") else int(draw.integers(1, 3))
    delay = draw.uniform(0, seconds.get(stage, 0.0))
    return f"stage:{stage}@{visit}" + (f"~{delay:.3f}" if delay > 0.01 else ""), None


def killed(number, seconds, *arguments, workspace):
    """Run a command that is to be killed; what it was doing then, None if it had ended before."""
    length = float((workspace / LENGTH).read_text())
    place, after = moment(number, seconds, length)
    trace = workspace / f"trace-{number}"
    trace.unlink(missing_ok=True)
    with begun(*arguments, workspace=workspace, kill=place, trace=trace) as process:
        ended_after(process, math.inf if after is None else after)
        process.kill()
        code = process.wait(60)
        assert code in (0, -9), f"{code}: {process.said()}"
        return now(trace) if code else None


def unused(name, workspace):
    """A run's name; a run of which a stopped session left half is begun again under another one."""
    names = (name + "-again" * attempt for attempt in itertools.count())
    return next(name for name in names if not (workspace / "runs" / name).exists())


def one_run(number, wanted, seconds, workspace):
    """A run that is killed again and again, then finished and judged."""
    name, hits = unused(f"killed-{number}", workspace), []
    arguments = (*RUN, "--name", name)
    for kill in range(number * PER_RUN, (number + 1) * PER_RUN):
        stage = killed(kill, seconds, *arguments, workspace=workspace)
        if (workspace / "runs" / name).exists():
            arguments = ("resume", name)
        if stage is None:
            break
        hits.append({"stage": stage, "revisions": revisions(workspace, name)})
    done = coevo(*arguments, workspace=workspace)
    return {"hits": hits, "verdict": judge(done, name, wanted, workspace)}


def judge(done, name, wanted, workspace):
    """Faults of a finished run; ``equal`` when nothing is."""
    if done.returncode:
        return done.stderr.strip()
    if states(workspace, name) != wanted:
        return "other states"
    if published(workspace, name) != list(range(1, ITERATIONS + 1)):
        return "points missing or published twice"
    found = coevo("fsck", name, workspace=workspace)
    return "equal" if found.returncode == 0 else found.stdout.strip()


def judged_runs(wanted, workspace):
    """Runs in order, as many at a time as there are cores, each judged once."""
    seconds = seconds_of(workspace)

    def judged(number):
        cell = workspace / f"{number}.json"
        if not cell.exists():
            cell.write_text(json.dumps(one_run(number, wanted, seconds, workspace)))
        return number, json.loads(cell.read_text())

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in itertools.count(0, BATCH):
            yield from pool.map(judged, range(start, start + BATCH))


def test_random_kills_change_nothing(untouched, workspace):
    kills, stages, failed = 0, Counter(), []
    for number, cell in judged_runs(untouched, workspace):
        for hit in cell["hits"]:
            kills += 1
            stages.update(hit["stage"].split(AND))
            print(f"{kills:4}  run {number:3}  revision {hit['revisions'] - 1:2}  {hit['stage']:30}  {cell['verdict']}")
        sys.stdout.flush()
        failed += [number] * (cell["verdict"] != "equal")
        if kills >= KILLS:
            break
    print("\n".join(f"{count:4}  {stage}" for stage, count in stages.most_common()))
    print(f"{kills} kills, {len(failed)} of {number + 1} runs not equal")
    assert not failed
    assert KILLS < 200 or not [stage for stage in STAGES if stages[stage] < LEAST]
