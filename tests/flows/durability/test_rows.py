"""A run over a table: killed, it continues to the same states; another table is refused until it is accepted."""

import json
import re
import signal
from pathlib import Path

import pytest
from support.row_tables import written
from support.runs import coevo, states

from coevo.envs.rows.task_table import load_table

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
SMALL = (
    "iterations=3", "rollout.tasks=4", "rollout.group_size=4", "evaluation.tasks=8", "evaluation.every=2",
    "warmstart.steps=60", "warmstart.probe_every=60", "warmstart.probe_tasks=16",
)  # fmt: skip
ROWS = [dict(row) for row in load_table("coevo.envs.rows:lockers.jsonl").rows]


def run(workspace, path, **how):
    return coevo("run", "rows-grpo", f"env.path={path}", *SMALL, "--name", "table", workspace=workspace, **how)


@pytest.fixture(autouse=True)
def server(prefect_url, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)


def test_a_killed_run_continues_to_the_same_states_and_a_changed_table_is_refused(tmp_path):
    path = written(tmp_path, ROWS)
    whole = run(tmp_path / "one", path)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    killed = run(tmp_path / "two", path, kill="coevo.tasks.play.play:RolloutWorker.play_turn@5")
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    resumed = coevo("resume", "table", workspace=tmp_path / "two")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    one, two = (states(tmp_path / name, "table") for name in ("one", "two"))
    assert one == two
    assert one[-1]["weights"] == {"env.path": load_table(str(path)).digest}
    names = {name for name in one[-1]["metrics"] if name.startswith("agent/rewards/")}
    assert {"agent/rewards/train/opens", "agent/rewards/train/names_a_tool"} <= names
    assert set(one[0]["panels"]) == {"new-items"}
    written(tmp_path, ROWS[:-1])
    refused = coevo("resume", "table", "--iterations", "4", workspace=tmp_path / "one")
    assert refused.returncode == 2
    (line,) = refused.stderr.strip().splitlines()[-1:]
    assert re.search(r"data of env\.path \(put the former files back\): \w{12} -> \w{12}; .* add --accept-change", line)
    taken = coevo("resume", "table", "--iterations", "4", "--accept-change", workspace=tmp_path / "one")
    assert taken.returncode == 0, taken.stdout + taken.stderr
    assert states(tmp_path / "one", "table")[-1]["accepted_change"]


def test_the_shipped_recipe_learns_what_opens_each_locker(tmp_path):
    done = coevo("run", "rows-grpo", "evaluation.every=40", "--name", "lockers", workspace=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    first, *_, last = (state["metrics"] for state in states(tmp_path, "lockers"))
    assert first["agent/success/new-items"] < 0.6
    assert last["agent/success/new-items"] > 0.8
    assert last["agent/rewards/new-items/opens"] == pytest.approx(last["agent/success/new-items"])


def test_a_bad_table_stops_a_run_before_anything_is_trained(tmp_path):
    path = written(tmp_path, [*ROWS, {**ROWS[0], "answer": None}])
    stopped = run(tmp_path / "workspace", path)
    assert stopped.returncode == 2
    assert "gate table: " in stopped.stderr
    assert "missing='answer'" in stopped.stderr
    assert not (tmp_path / "workspace" / "cache" / "warmstarts").exists()
    (result,) = (tmp_path / "workspace" / "runs" / "table").rglob("rows.json")
    assert json.loads(Path(result).read_text())["success"] is False
