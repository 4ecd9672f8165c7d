"""Many episodes of which many fail: all end, every loss is counted, and nothing is left behind, at either pace."""

import gc
from collections import Counter
from contextlib import closing

import psutil
import pytest
from support.scheduled import wait_for
from support.storm import Storm
from support.worker import alone, worker

from coevo.records.draws import key
from coevo.tasks.play.episode_metrics import loss_metrics, outcome_metrics
from coevo.tasks.play.play import Attempt, RolloutWorker


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("pace", "count"), [("turn", 200), pytest.param("episode", 200, marks=pytest.mark.soak)])
def test_a_storm_of_failures_ends_and_is_counted(pace, count, tmp_path):
    real, some = worker(), count // 40
    log = tmp_path / "pids"
    with closing(Storm(workers=6 if pace == "turn" else 8, log=log)) as env:
        storm = RolloutWorker(env, real.context, real.engine, 5) if pace == "turn" else alone(env, 5)
        tasks = env.sample(count, key("storm"))
        assert Counter(task.kind for task in tasks) == {
            "exit": some, "raise": some, "hang": 2 * some, "long": 2 * some, "calm": 34 * some,
        }  # fmt: skip
        episodes = storm.play([Attempt(task, 0, (), "rollout-0", 1, key("storm", task.id)) for task in tasks])
        assert env.workers._alive
    ended = {kind: [each for each in episodes if each.task.kind == kind] for kind in ("exit", "raise", "hang", "long")}
    assert all(each.lost.startswith("crash: its process ended with exit code 9 (turn 1, ") for each in ended["exit"])
    assert all(each.lost.startswith("exception: RuntimeError: struck (storm.py:") for each in ended["raise"])
    assert all(each.lost.startswith("timeout: no answer in 4 s (turn 1, ") for each in ended["hang"])
    assert all(each.cut.startswith("overlong: ") and each.truncated and not each.lost for each in ended["long"])
    assert all(each.success and len(each.turns) == 3 for each in episodes if each.task.kind == "calm")
    assert loss_metrics(episodes, "train") == {
        "agent/lost/train/crash": some, "agent/lost/train/exception": some, "agent/lost/train/timeout": 2 * some,
        "agent/cut/train/overlong": 2 * some,
    }  # fmt: skip
    # Lost episodes count in no rate; overlong ones are failures like any other.
    assert outcome_metrics(episodes, "train")["agent/success/train"] == pytest.approx(34 / 36)
    gc.collect()
    simulators = {int(line) for line in log.read_text().splitlines()}
    assert len(simulators) > 3 * some  # those that exit or hang are replaced
    wait_for(lambda: not any(map(psutil.pid_exists, simulators)), 60)
    assert len(env._left) == 0
