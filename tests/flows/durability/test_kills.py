"""Every point of the commit protocol, killed in whole runs: each run is killed at one point after another.

A run that is killed again while it resumes has to recover from both, so a chain proves more than its points alone.
"""

import os
import re
import signal
import subprocess
import time

import psutil
import pytest
from support.families import command_of
from support.runs import ROOT, RUN, coevo, command, published, revisions, states
from support.soak import mostly_soak
from support.status import same_everywhere

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

CHAINS = {
    "each-step-of-the-protocol": (
        "stage:rollout@1~0.05",
        "coevo.models.trainer.trainer_client:Trainer.save@1+",
        "coevo.tasks.iteration.paired_replay:replay@1",
        "coevo.memory.bank.table:VersionedTable.upsert@2",
        "coevo.lineage.lineage:write_manifest@1+",
        "coevo.lineage.repository:Repository.commit@1+",
        "coevo.tasks.publish.mlflow.tracker:Tracker.publish@1",
        "coevo.lineage.publish_cursor:Cursor.advance@1+",
    ),
    "1-nothing-shared-is-written": (
        "stage:initial policy@1",
        "stage:evaluate@1~0.05",
        "stage:rollout@1~0.05",
        "coevo.models.trainer.trainer_client:Trainer.update@1",
        "coevo.models.trainer.trainer_client:Trainer.save@1+",
        "stage:write candidates@1+",
        "coevo.tasks.iteration.paired_replay:replay@1",
        "coevo.memory.admission.replay:judge@1",
    ),
    "2-the-stores-are-written": (
        "coevo.lineage.repository:_lay_out@1+",
        "coevo.lineage.objects.artifacts:Artifacts.add@1",
        "coevo.tasks.commit:write_episodes@2+",
        "coevo.memory.bank.table:VersionedTable.upsert@1+",
        "coevo.memory.bank.table:VersionedTable.upsert@2",
        "coevo.memory.bank.bank:Bank.merge@1+",
        "dvc_data.hashfile.transfer:transfer@1+",
        "coevo.lineage.objects.artifacts:Artifacts.add@1+",
        "coevo.lineage.lineage:write_manifest@1+",
    ),
    "3-the-commit-and-what-recovers": (
        "coevo.lineage.repository:Repository.commit@2",
        "coevo.lineage.git:Git.settle@1+",
        "coevo.lineage.repository:Repository.reset@1+",
        "coevo.memory.bank.table:VersionedTable.restore@1",
        "coevo.memory.bank.table:VersionedTable.restore@1+",
        "coevo.lineage.repository:Repository.retag@1+",
        "coevo.lineage.repository:Repository.commit@1+",
    ),
    "4-the-publication": (
        "coevo.tasks.publish.mlflow.tracker:Tracker._find_or_create@1+",
        "coevo.tasks.publish.mlflow.tracker:Tracker.publish@1",
        "coevo.tasks.publish.mlflow.tracker:Tracker._publish_points@1+",
        "coevo.lineage.publish_cursor:Cursor.advance@1",
        "coevo.lineage.publish_cursor:Cursor.advance@1+",
    ),
    "5-the-publisher-and-the-end": (
        "coevo.tasks.publish.publisher:Publisher.submit@2+",
        "coevo.tasks.publish.publisher:Publisher.close@1",
        "coevo.tasks.publish.mlflow.tracker:Tracker.finish@1",
    ),
}
"""One kill of each step, then the others by the number of their step.

Publication runs beside the loop: its kills are reached wherever that has come.
"""


def killed(name, kill, arguments, workspace):
    """Kill a command there; what continues the run afterwards."""
    done = coevo(*arguments, workspace=workspace, kill=kill)
    assert done.returncode == -signal.SIGKILL, f"{kill}: not reached: {done.stderr}"
    print(f"killed at {kill} with {revisions(workspace, name)} revisions", flush=True)
    return ("resume", name)


@pytest.mark.parametrize("chain", mostly_soak([*CHAINS], "each-step-of-the-protocol"))
def test_a_run_survives_one_kill_after_another(untouched, workspace, chain):
    arguments = (*RUN, "--name", chain)
    for kill in CHAINS[chain]:
        arguments = killed(chain, kill, arguments, workspace)
    done = coevo(*arguments, workspace=workspace)
    assert done.returncode == 0, done.stderr
    assert states(workspace, chain) == untouched
    assert published(workspace, chain) == [1, 2, 3]
    found = coevo("fsck", chain, workspace=workspace)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("kill", "safeguard"),
    [
        ("coevo.memory.bank.bank:Bank.merge@3+", "coevo.memory.bank.bank:Bank.restore"),
        ("coevo.lineage.lineage:write_manifest@3+", "coevo.lineage.repository:Repository.reset"),
    ],
)
@pytest.mark.soak
def test_a_safeguard_that_is_taken_out_is_noticed(untouched, workspace, kill, safeguard):
    name = safeguard.replace(":", ".")
    arguments = killed(name, kill, (*RUN, "--name", name), workspace)
    done = coevo(*arguments, workspace=workspace, without=[safeguard])
    assert done.returncode != 0 or states(workspace, name) != untouched


def starve(trainer):
    """Leave a process the memory that it has, and no more."""
    trainer.rlimit(psutil.RLIMIT_AS, (2**20, 2**20))


def without_its_trainer(fault, *arguments, workspace, name):
    """Run a command whose trainer meets a fault once it is ready: exit status, and what was written to stderr."""
    log = workspace / "runs" / name / "log"
    before = log.read_text().count("ready after") if log.exists() else 0
    line = command(*arguments, workspace=workspace)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    taken = {"MALLOC_MMAP_THRESHOLD_": "65536"}  # what is larger is asked of the system, not found in the heap
    with psutil.Popen(line, cwd=ROOT, env=os.environ | taken, process_group=0, **streams) as run:
        while run.poll() is None and not (log.exists() and log.read_text().count("ready after") > before):
            time.sleep(0.02)
        for child in run.children(recursive=True):
            if "coevo.models.trainer.child" in command_of(child):
                fault(child)
        said = run.communicate(timeout=900)[1]
        return run.returncode, said


@pytest.mark.soak
def test_a_trainer_without_memory_and_a_killed_one_end_the_run_in_one_line_and_it_goes_on(untouched, workspace):
    name = "trainer"
    code, said = without_its_trainer(starve, *RUN, "--name", name, workspace=workspace, name=name)
    assert code == 2, said
    assert re.fullmatch(r"coevo: the trainer (has run out of memory|died|failed).*\n", said), said
    assert same_everywhere(workspace, name)["status"] == "failed"
    resume = ("resume", name)
    code, said = without_its_trainer(psutil.Process.kill, *resume, workspace=workspace, name=name)
    assert code == 2, said
    assert re.fullmatch(r"coevo: the trainer died \(exit status -9\): .* if memory runs out\n", said), said
    done = coevo(*resume, workspace=workspace)
    assert done.returncode == 0, done.stderr
    assert states(workspace, name) == untouched
