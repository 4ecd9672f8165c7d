"""Whole runs, small enough for a test: real stores, a real Prefect server, a real trainer child."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mlflow import MlflowClient
from support import git_at, warm

ROOT = Path(__file__).parents[2]
KILL_AT = Path(__file__).with_name("kill_at.py")
SMALL = (
    "warmstart.steps=120",
    "warmstart.episodes=8",
    "warmstart.drills=6",
    "warmstart.probe_every=120",
    "warmstart.probe_tasks=16",
    "rollout.tasks=4",
    "rollout.group_size=4",
    "bank.admission.replays=2",
    "bank.admission.delta=-1.0",
    "evaluation.tasks=16",
    "evaluation.final_panels=[]",
    "evaluation.every=2",
)
RUN = ("run", "homerules-coevo-rl", "iterations=3", "seed=5", *SMALL)


def command(*arguments, workspace, kill=None, trace=None, without=()):
    """Command line that runs a command under ``kill_at``."""
    harness = [part for name, value in (("--kill", kill), ("--trace", trace)) if value for part in (name, str(value))]
    harness += [part for target in without for part in ("--without", target)]
    return [sys.executable, str(KILL_AT), *harness, "--", *arguments, "--workspace", str(workspace)]


def coevo(*arguments, timeout=900, kill=None, **how):
    """Run a command in a subprocess; with ``kill``, it dies there, as ``kill_at`` or ``git_at`` says."""
    inside = git_at.is_inside_git(kill)
    _, *line = command(*arguments, kill=None if inside else kill, **how)
    with TemporaryDirectory() as trap:
        path = git_at.path_with(kill, Path(trap)) if inside else os.environ["PATH"]
        return warm.run(*line, environment={**os.environ, "PATH": path}, timeout=timeout)


def share(warmstarts, workspace):
    """A new workspace whose runs have these warm starts."""
    (workspace / "cache").mkdir(parents=True)
    (workspace / "cache" / "warmstarts").symlink_to(warmstarts)
    return workspace


def published(workspace, run):
    """Steps at which MLflow has the size of the bank, one for each point; the run must be closed."""
    client = MlflowClient(f"sqlite:///{Path(workspace) / 'mlflow.db'}")
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    (found,) = client.search_runs(experiments, f"tags.`coevo.run` = '{run}'")
    assert found.info.status != "RUNNING"
    return [point.step for point in client.get_metric_history(found.info.run_id, "bank/size")]


def revisions(workspace, run):
    """How many revisions a run has; none as long as it has no lineage."""
    lineage = Path(workspace) / "runs" / run / "lineage"
    count = ["git", "rev-list", "--count", "--branches"]
    return int(subprocess.run(count, cwd=lineage, capture_output=True, check=True).stdout) if lineage.is_dir() else 0


def states(workspace, run):
    """The ``state`` of every revision, oldest first, from the run's own history."""
    lineage = Path(workspace) / "runs" / run / "lineage"
    log = subprocess.run(
        ["git", "log", "--reverse", "--format=%H"], cwd=lineage, capture_output=True, text=True, check=True
    )
    manifests = (
        subprocess.run(["git", "show", f"{commit}:manifest.json"], cwd=lineage, capture_output=True, check=True).stdout
        for commit in log.stdout.split()
    )
    return [json.loads(manifest)["state"] for manifest in manifests]
