"""Many episodes of which many fail: all end, every loss is counted, and nothing is left behind, at either pace."""

import gc
from collections import Counter
from contextlib import closing

import psutil
import pytest
from support.player import alone, player
from support.storm import Storm

from coevo.records.draws import key
from coevo.tasks.play.attempt import Attempt
from coevo.tasks.play.losses import loss_metrics
from coevo.tasks.play.play import Player
from coevo.tasks.steps.rollout import outcome_metrics


def simulators():
    """Processes of simulators, by their command line: forks of this process's fork server."""
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE and "coevo.envs.stateful.worker" in " ".join(child.cmdline())
    ]


@pytest.mark.full
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("pace", "count"), [("turn", 1000), ("episode", 200)])
def test_a_storm_of_failures_ends_and_is_counted(pace, count):
    real, some = player(), count // 40
    before = len(simulators())
    with closing(Storm(workers=2 if pace == "turn" else 8)) as env:
        storm = Player(env, real.context, real.engine, 5) if pace == "turn" else alone(env, 5)
        tasks = env.sample(count, key("storm"))
        assert Counter(task.kind for task in tasks) == {
            "exit": some, "raise": some, "hang": 2 * some, "long": 2 * some, "calm": 34 * some,
        }  # fmt: skip
        episodes = storm.play([Attempt(task, 0, (), "rollout-0", 1, key("storm", task.id)) for task in tasks])
        assert env.workers._alive
    ended = {kind: [each for each in episodes if each.task.kind == kind] for kind in ("exit", "raise", "hang", "long")}
    assert all(each.lost.startswith("crash: its process ended with exit code 9 (turn 1, ") for each in ended["exit"])
    assert all(each.lost.startswith("exception: RuntimeError: struck (turn 1, ") for each in ended["raise"])
    assert all(each.lost.startswith("timeout: no answer in 0.3 s (turn 1, ") for each in ended["hang"])
    assert all(each.cut.startswith("overlong: ") and each.truncated and not each.lost for each in ended["long"])
    assert all(each.success and len(each.turns) == 3 for each in episodes if each.task.kind == "calm")
    assert loss_metrics(episodes, "train") == {
        "agent/lost/train/crash": some, "agent/lost/train/exception": some, "agent/lost/train/timeout": 2 * some,
        "agent/cut/train/overlong": 2 * some,
    }  # fmt: skip
    # Lost episodes count in no rate; overlong ones are failures like any other.
    assert outcome_metrics(episodes, "train")["agent/success/train"] == pytest.approx(34 / 36)
    gc.collect()
    assert len(simulators()) <= max(before, 1)  # the fork server
    assert len(env._left) == 0
