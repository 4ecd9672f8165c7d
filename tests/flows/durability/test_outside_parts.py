"""A whole run of the command line whose parts all come from other packages."""

import pytest
from support import outside
from support.outside import PARTS
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


def test_a_whole_run_with_six_parts_from_outside_resumes_bit_for_bit_after_a_kill(tmp_path, workspace):
    """The tree is as it was: each part is a file in a folder that the recipe names."""
    named = outside.settings(outside.write(tmp_path))
    run = (
        "run",
        "homerules-coevo-rl",
        "iterations=4",
        "seed=5",
        *SMALL,
        *named,
        "bank.every=1",
        "bank.retrieval.options.least=1",
        "bank.retrieval.scoped=false",
    )
    run = tuple(each for each in run if not each.startswith("bank.admission."))
    done = coevo(*run, "--name", "outside", workspace=workspace)
    assert done.returncode == 0, done.stderr
    assert "bank.admission.type=my_admission:First admits lessons without evidence" in done.stdout
    killed = coevo(*run, "--name", "again", workspace=workspace, kill="coevo.tasks.steps.judge:judge@1+")
    assert killed.returncode == -9, killed.stderr
    assert coevo("resume", "again", workspace=workspace).returncode == 0
    found = states(workspace, "outside")
    assert found == states(workspace, "again")
    metrics = [each["metrics"] for each in found[1:]]
    assert [each.get("bank/admission/taken", 0) > 0 for each in metrics] == [False, False, True, True]
    assert ["policy/advantage/my_rank_Rank_spread" in each for each in metrics] == [True, True, False, False]
    assert metrics[3]["bank/retrieval/my_retrieval_Shared_score"] >= 1
    assert sorted(found[-1]["modules"]) == sorted(module for module, *_ in PARTS.values())
