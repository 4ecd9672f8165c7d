"""A run of a policy from a directory, with adapters: its own tokenizer, its own template, weights that stay."""

import pytest
from support.runs import SMALL, coevo, states
from support.worker import CONFIG, environment

from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import build, save
from coevo.records.draws import key

pytestmark = pytest.mark.full


def test_adapters_of_a_given_policy_are_trained_and_kept(tmp_path, workspace):
    given = tmp_path / "given"
    save(build(CONFIG.policy, (*environment().vocabulary, *CONTEXT_WORDS), key(2)), given)
    settings = [s for s in SMALL if not s.startswith("warmstart")]
    policy = ("policy.type=pretrained", f"policy.path={given}", "policy.lora={r: 4, alpha: 8}", "warmstart=null")
    done = coevo("run", "homerules-coevo-rl", "--name", "lora", "iterations=1", *settings, *policy, workspace=workspace)
    assert done.returncode == 0, done.stderr
    _, last = states(workspace, "lora")
    assert last["iteration"] == 1
    assert "optimizer" in last["artifacts"]
    kept = {path.name for path in (workspace / "runs/lora/lineage/policy").iterdir()}
    assert "adapter_model.safetensors" in kept
    assert "model.safetensors" not in kept


def test_a_policy_that_is_not_there_is_one_line(tmp_path, workspace):
    policy = ("policy.type=pretrained", f"policy.path={tmp_path / 'none'}", "warmstart=null")
    done = coevo("run", "homerules-coevo-rl", "--name", "none", *policy, workspace=workspace)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot be read" in done.stderr
