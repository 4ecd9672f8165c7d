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


def test_two_iterations_of_the_preset(tmp_path):
    try:
        done = coevo(*RUN, "--name", "one", workspace=tmp_path)
        assert done.returncode == 0, done.stderr
    finally:
        coevo("down", workspace=tmp_path)
    before, _, after = states(tmp_path, "one")
    assert after["metrics"].keys() >= ONLY_THEIRS
    for table in ("entries", "stats", "clusters"):
        assert before["tables"][table] != after["tables"][table]
    assert before["tables"]["verdicts"] == after["tables"]["verdicts"]
    assert before["artifacts"]["policy"] != after["artifacts"]["policy"]
