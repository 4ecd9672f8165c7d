"""The preset as a user runs it: policy, bank and clusters change, and each part leaves the figures that only it has."""

import pytest
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
RUN = (
    "run", "homerules-slea-rl", "iterations=2", "seed=5", "bank.retrieval.warmup=1", "bank.retrieval.min_entries=0",
    *(setting for setting in SMALL if not setting.startswith("bank.admission")),
)  # fmt: skip
ONLY_THEIRS = {
    "writer/median_reward", "admission/duplicates", "retrieval/clusters", "retrieval/fallbacks", "advantage/step_std",
}  # fmt: skip


def test_two_iterations_of_the_preset(workspace):
    done = coevo(*RUN, "--name", "slea-rl", workspace=workspace)
    assert done.returncode == 0, done.stderr
    before, _, after = states(workspace, "slea-rl")
    assert after["metrics"].keys() >= ONLY_THEIRS
    for table in ("entries", "stats", "clusters"):
        assert before["tables"][table] != after["tables"][table]
    assert before["tables"]["verdicts"] == after["tables"]["verdicts"]
    assert before["artifacts"]["policy"] != after["artifacts"]["policy"]
