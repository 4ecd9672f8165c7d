"""Parts of the algorithm that add to a revision: their additions survive kills with the rest of it."""

import signal
from pathlib import Path
from time import monotonic

import psutil
import pytest
from support.fsck import fsck
from support.kill_at import now
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
TESTS = Path(__file__).parents[2]
BRIEF = (
    "iterations=2", "warmstart.steps=20", "warmstart.probe_every=20", "warmstart.probe_tasks=8", "evaluation.tasks=8",
    "evaluation.final_panels=[]",
)  # fmt: skip


def survived(workspace, name, settings, *kills):
    """States of a run that was killed at these points one after another, equal to those of an undisturbed one."""
    done = coevo("run", *settings, "--name", name, workspace=workspace)
    assert done.returncode == 0, done.stderr
    begin, onward = ("run", *settings, "--name", f"{name}-killed"), ("resume", f"{name}-killed")
    for number, kill in enumerate(kills):
        trace = workspace / f"{name}-trace-{number}"
        done = coevo(*(onward if number else begin), workspace=workspace, kill=kill, trace=trace)
        assert done.returncode == -signal.SIGKILL, done.stderr
    done = coevo(*onward, workspace=workspace)
    assert done.returncode == 0, done.stderr
    found = states(workspace, name)
    assert found == states(workspace, f"{name}-killed")
    assert fsck(workspace, f"{name}-killed") == []
    return found


@pytest.mark.soak
def test_a_critic_and_the_baselines_of_its_rewards(workspace):
    reward = "update.reward={type: capability-evolution, gamma: 1.0}"
    settings = ("homerules-ppo", *BRIEF, reward, "update.loss.kl_in=reward", "rollout.tasks=3", "rollout.group_size=3")
    *_, last = survived(workspace, "critic", settings, "coevo.models.trainer.trainer_client:Trainer.save@2+")
    theirs = {"policy/critic/explained_variance", "policy/reward/intrinsic", "policy/reward/kl", "policy/critic/loss"}
    assert last["metrics"].keys() >= theirs
    assert {"baselines", "optimizer"} <= last["artifacts"].keys()


@pytest.mark.soak
def test_internalization(workspace):
    """Killed between the sides of a measurement, and in the evaluation of the same revision."""
    settings = (
        "homerules-coevo-rl",
        *SMALL,
        "iterations=2",
        "seed=5",
        "evaluation.internalization=1",
        "evaluation.every=1",
    )
    kills = ("coevo.tasks.steps.evaluate:_play@2", "coevo.tasks.iteration.held_out:play_panel@2+")
    *_, last = survived(workspace, "internalization", settings, *kills)
    folder = "bank/internalization/seen-houses"
    assert last["metrics"].keys() >= {
        f"{folder}/top1",
        f"{folder}/top1_minus_none_low_over_tasks",
        f"{folder}/top1_minus_random",
    }
    assert last["metrics"]["cost/internalization/episodes"] == 3 * 16


@pytest.mark.soak
def test_unfinished_episodes(workspace):
    """Killed after a rollout that went on with what was unfinished, and amid a commit after another one that did."""
    settings = ("homerules-context-lite", *BRIEF, "rollout.tasks=4", "rollout.turns=2", "update.critic.warmup=1")
    kills = (
        "coevo.tasks.play.vectorised_environments:VectorisedEnvironments.play@2+",
        "coevo.tasks.play.vectorised_environments:write_unfinished@1+",
    )
    found = survived(workspace, "truncation", settings, *kills)
    theirs = {
        "policy/critic/bootstrap",
        "policy/critic/explained_variance",
        "agent/episodes/ended",
        "agent/episodes/unfinished",
    }
    assert found[-1]["metrics"].keys() >= theirs
    updated = [[name in state["metrics"] for name in ("policy/critic/loss", "policy/update/loss")] for state in found]
    assert updated == [[False, False], [True, False], [True, True]]
    assert {"unfinished", "optimizer"} <= found[-1]["artifacts"].keys()
    assert len({state["artifacts"]["unfinished"] for state in found}) > 2


def test_unfinished_episodes_of_a_stateful_environment(workspace, tmp_path):
    """Killed in the middle of a conversation: its actions are played again, and no simulator outlives its run."""
    log = tmp_path / "pids"
    stateful = (f"env={{type: 'support.simulators:Household', options: {{log: '{log}'}}}}", f"python_path=[{TESTS}]")
    settings = ("homerules-context-lite", *BRIEF, "rollout.tasks=4", "rollout.turns=2", "update.critic.warmup=1")
    found = survived(
        workspace,
        "stateful",
        (*settings, *stateful),
        "coevo.tasks.play.vectorised_environments:VectorisedEnvironments._fill@4",
    )
    assert "unfinished" in found[-1]["artifacts"]
    pids = {int(line) for line in log.read_text().split()}
    assert len(pids) > 2
    gone_by = monotonic() + 10
    while alive := [pid for pid in pids if psutil.pid_exists(pid)]:
        assert monotonic() < gone_by, alive


@pytest.mark.soak
def test_a_batch_played_ahead_beside_the_update(workspace):
    """Killed while it plays, amid the commit that holds it, and after it was taken."""
    settings = ("homerules-coevo-rl", *SMALL, "iterations=4", "seed=5", "rollout.ahead=1")
    kills = ("stage:play ahead@2~0.1", "coevo.tasks.iteration.prefetch:write_prefetched@1+", "stage:rollout@2+")
    found = survived(workspace, "ahead", (*settings, "update.loss.importance_cap=2.0"), *kills)
    assert {"update", "play ahead"} <= set(now(workspace / "ahead-trace-0").split(" + "))
    assert [state["metrics"].get("policy/staleness") for state in found] == [None, 0.0, 1.0, 1.0, 1.0]
    assert len({state["artifacts"]["ahead"] for state in found[1:]}) == 4
    assert len({state["artifacts"]["policy"] for state in found}) == 5
