"""A run whose environment fails again and again ends by itself, counts each loss, and leaves no process."""

from collections import Counter

import psutil
import pytest
from support.runs import coevo, states
from support.scheduled import wait_for
from support.storm import StruckHousehold

TESTS = __file__.rpartition("/flows/")[0]
GROUP = 2
STORM = (
    "run", "homerules-grpo", "iterations=1", "seed=5", "rollout.tasks=500", f"rollout.group_size={GROUP}",
    "warmstart.steps=20", "warmstart.probe_every=20", "warmstart.probe_tasks=8",
    "evaluation.tasks=8", "evaluation.final_panels=[]",
)  # fmt: skip


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_run_survives_a_storm_of_failures(workspace, tmp_path):
    log = tmp_path / "struck"
    stormy = f"{StruckHousehold.__module__}:{StruckHousehold.__name__}"
    env = f"env={{type: '{stormy}', options: {{log: '{log}'}}, simulator: {{workers: 4, act_seconds: 1.0}}}}"
    done = coevo(*STORM, env, f"python_path=[{TESTS}]", "--name", "storm", workspace=workspace, timeout=500)
    assert done.returncode == 0, done.stderr
    lines = set(log.read_text().splitlines())
    struck = Counter(line.split()[0] for line in lines if not line.isdecimal())
    assert all(15 <= struck[fate] <= 35 for fate in ("exit", "hang", "long")), struck  # of 500 tasks
    metrics = states(workspace, "storm")[-1]["metrics"]
    found = {name: value for name, value in metrics.items() if name.startswith(("agent/lost/", "agent/cut/"))}
    assert found == {
        "agent/lost/train/crash": GROUP * struck["exit"],
        "agent/lost/train/timeout": GROUP * struck["hang"],
        "agent/cut/train/overlong": GROUP * struck["long"],
    }
    assert f"train: {GROUP * (struck['exit'] + struck['hang'])} of 1000 episodes lost, first " in done.stdout
    simulators = [int(line) for line in lines if line.isdecimal()]
    assert len(simulators) > GROUP * (struck["exit"] + struck["hang"])  # each was replaced
    wait_for(lambda: not any(map(psutil.pid_exists, simulators)), 60)
