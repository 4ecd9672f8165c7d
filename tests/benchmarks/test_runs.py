"""The benchmarks on runs of seconds."""

import pytest
from support import runs

from benchmarks import command
from benchmarks.bench import Bench
from benchmarks.command import coevo
from benchmarks.learning import homerules
from benchmarks.running import newcomer
from coevo.lineage.workspace import Workspace

pytestmark = pytest.mark.timeout(1800)

TINY = (  # a policy that fails everything is good enough: times and plumbing are looked at, not success
    "warmstart.steps=30",
    "warmstart.probe_every=30",
    "warmstart.probe_tasks=16",
    "rollout.tasks=4",
    "rollout.group_size=4",
    "evaluation.tasks=12",
)


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path / "results", Workspace(tmp_path / "workspace"))
    yield made
    coevo(made.workspace, "down")


@pytest.fixture
def warm_commands(monkeypatch):
    """Commands of the benchmarks in processes that have imported the large libraries already."""

    def run(workspace, *arguments):
        done = runs.coevo(*arguments, workspace=workspace.root)
        assert done.returncode == 0, done.stderr

    monkeypatch.setattr(command, "coevo", run)


@pytest.mark.soak
def test_all_arms_start_alike_and_policy_only_has_the_time_of_joint(bench, warm_commands):
    cells = homerules.measure(bench, [1], 2, TINY)
    (joint,), (policy_only,), (frozen,) = cells["joint"], cells["policy-only"], cells["frozen"]
    assert joint["start"] == policy_only["start"] == frozen["start"]
    assert joint["iterations"] == frozen["iterations"] == 2 <= policy_only["iterations"]
    assert policy_only["loop_seconds"] >= joint["loop_seconds"]
    coevo(bench.workspace, "down")
    assert homerules.measure(bench, [1], 2, TINY) == cells
    assert not (bench.workspace.root / "servers.json").read_text().count("pid")


@pytest.mark.soak  # everything is imported and started anew, as by make run
def test_a_newcomers_run_starts_from_nothing_and_is_measured_whole(bench):
    result = newcomer.measure(bench, ("iterations=1", *TINY))
    assert result["seconds"] > 1
    assert 3e8 < result["peak_bytes"] < 6e9
    assert [paths.name for paths in bench.workspace.runs()] == ["homerules-coevo-rl-1"]
