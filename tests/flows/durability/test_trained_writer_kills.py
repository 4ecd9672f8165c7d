"""A run whose policy learns to write: killed before, within and after its updates, it ends as one that was not."""

import signal

import pytest
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

KILLS = (
    "coevo.tasks.writing.journal:Journal.append@3+",
    "coevo.models.trainer.trainer_client:Trainer.update@1+",
    "coevo.lineage.repository:Repository.commit@2",
    "coevo.tasks.writing.artifact:write_writing@2+",
)
UNJUDGED = (*(setting for setting in SMALL if not setting.startswith("bank.admission.")), "warmstart.reflections=2")
RECIPES = {
    "homerules-retroagent-trained": (*UNJUDGED, "evaluation.reflections=16"),
    "homerules-coevo-rl-trained-writer": (*UNJUDGED, "bank.admission.replays=3"),
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_killed_run_learns_the_same(workspace, recipe):
    run = ("run", recipe, "iterations=3", "seed=5", *RECIPES[recipe])
    whole, killed = f"whole-{recipe}", f"killed-{recipe}"
    done = coevo(*run, "--name", whole, workspace=workspace)
    assert done.returncode == 0, done.stderr
    arguments = (*run, "--name", killed)
    for kill in KILLS:
        assert coevo(*arguments, workspace=workspace, kill=kill).returncode == -signal.SIGKILL, kill
        arguments = ("resume", killed)
    done = coevo(*arguments, workspace=workspace)
    assert done.returncode == 0, done.stderr
    found = states(workspace, whole)
    assert states(workspace, killed) == found
    assert any(state["metrics"].get("policy/writer/answers") for state in found)
    assert all("policy/loss/" in " ".join(state["metrics"]) for state in found[1:])
