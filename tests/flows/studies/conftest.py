"""A study whose runs are small ones, made with the real stores."""

import pytest
from support import small_run

from coevo.configs.load.load_study import stored_study
from coevo.lineage.workspace import Workspace

SETTINGS = {
    "name": "few",
    "paper": "a guess",
    "figure": "Fig. 1",
    "finding": "Few entries are better than many.",
    "recipe": small_run.RECIPE,
    "settings": ["iterations=3"],
    "arms": [
        {"name": "few", "settings": ["bank.retrieval.k=1"]},
        {"name": "many", "expected": "worse", "settings": ["bank.retrieval.k=4"]},
    ],
    "seeds": 2,
    "metrics": [{"name": "agent/success/seen-houses"}, {"name": "agent/success/seen-houses", "over": "area"}],
}
ENDS = {("few", 1): "1110", ("many", 1): "1000", ("few", 2): "1111"}
"""Outcomes at the end of the finished runs; `many` with seed 2 does not exist."""


@pytest.fixture(scope="session")
def study():
    return stored_study(SETTINGS, "test")


def build(root, arm, seed, end, iterations=3):
    k = {"few": 1, "many": 4}[arm]
    overrides = [f"iterations={iterations}", f"bank.retrieval.k={k}", f"seed={seed}"]
    return small_run.build(root, f"few-{arm}-s{seed}", overrides, ("0000", None, "1000", end))


@pytest.fixture(scope="session")
def studied(tmp_path_factory):
    """A workspace with three of the four runs. Nothing may change it."""
    workspace = Workspace(tmp_path_factory.mktemp("studied"))
    for (arm, seed), end in ENDS.items():
        build(workspace.root, arm, seed, end)
    return workspace
