"""A run with a simulator of another library: killed, it continues to the same states; the shipped recipe learns."""

import signal

import pytest
from support.runs import coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
SMALL = (
    "iterations=3", "rollout.tasks=4", "rollout.group_size=4", "evaluation.tasks=8", "evaluation.every=2",
    "warmstart.steps=20", "warmstart.probe_every=20", "warmstart.probe_tasks=16",
)  # fmt: skip


@pytest.fixture(autouse=True)
def server(prefect_url, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)


def run(workspace, *settings, **how):
    return coevo("run", "gymnasium-grpo", *settings, "--name", "lake", workspace=workspace, **how)


def test_a_killed_run_continues_to_the_same_states(tmp_path):
    whole = run(tmp_path / "one", *SMALL)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    killed = run(tmp_path / "two", *SMALL, kill="coevo.tasks.play.play:RolloutWorker.play_turn@30")
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    resumed = coevo("resume", "lake", workspace=tmp_path / "two")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert states(tmp_path / "one", "lake") == states(tmp_path / "two", "lake")


def test_the_shipped_recipe_learns_the_way_over_the_ice(tmp_path):
    done = run(tmp_path, "evaluation.every=30")
    assert done.returncode == 0, done.stdout + done.stderr
    first, *_, last = (state["metrics"] for state in states(tmp_path, "lake"))
    assert first["agent/success/held-out"] < 0.3
    assert last["agent/success/held-out"] > 0.7
