"""Whole runs, small enough for a test: real stores, a real Prefect server, a real trainer child."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
KILL_AT = Path(__file__).with_name("kill_at.py")
SMALL = (
    "warmstart.steps=120",
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


def coevo(*arguments, workspace, kill=None, without=(), timeout=280):
    """Run a command in a subprocess; with ``kill``, it dies there."""
    harness = [str(KILL_AT), *(["--kill", kill] if kill else [])]
    for target in without:
        harness += ["--without", target]
    return subprocess.run(
        [sys.executable, *harness, "--", *arguments, "--workspace", str(workspace)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


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
