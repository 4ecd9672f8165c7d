"""The benchmarks on runs of seconds."""

import pytest

from benchmarks.bench import Bench
from benchmarks.command import coevo
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


@pytest.mark.soak  # everything is imported and started anew, as by make run
def test_a_newcomers_run_starts_from_nothing_and_is_measured_whole(bench):
    result = newcomer.measure(bench, ("iterations=1", *TINY))
    assert result["seconds"] > 1
    assert 3e8 < result["peak_bytes"] < 6e9
    assert [paths.name for paths in bench.workspace.runs()] == ["homerules-coevo-rl-1"]
