"""Revisions of an imaginary run as they are published."""

from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.publish.mlflow.publication import Publication

CONFIG = {
    "recipe": "steps-grpo",
    "seed": 7,
    "iterations": 3,
    "env": {"type": "steps"},
    "rollout": {"tasks": 16, "sampling": {"temperature": 1.0}},
    "evaluation": {"panels": ["seen-houses"]},
}


def publication(revision, entries=(), config=CONFIG, config_hash="c0"):
    state = {
        "revision": revision,
        "parent": revision - 1,
        "iteration": revision,
        "config": config,
        "config_hash": config_hash,
        "panels": {"seen-houses": "p" * 64},
        "metrics": {"agent/success/train": 0.25 * revision, "policy/advantage_histogram/from_-0.5": 3.0},
    }
    observed = {"timestamp": 1_700_000_000_000 + 1000 * revision, "metrics": {"cost/seconds/rollout": 0.5 + revision}}
    return Publication(Manifest(state, observed), f"commit{revision}", list(entries))
