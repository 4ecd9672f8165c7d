"""A run starts only with room for its next revision: weights, and the optimizer of what is trained."""

from types import SimpleNamespace

import pytest
from support.policies import qwen

from coevo.configs.load.load import load_recipe
from coevo.lineage.objects.cache import disk_usage
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save
from coevo.tasks.run.open_run import require_start
from coevo.utilities import free_space
from coevo.utilities.errors import CoevoError

MIB = 1 << 20


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """The same policy in single and in half precision, and its number of parameters."""
    root, policy = tmp_path_factory.mktemp("policies"), qwen(1, hidden_size=64, heads=2, kv_heads=1, head_dim=32)
    save(policy, root / "float32")
    save(Policy(policy.model.bfloat16(), policy.tokenizer), root / "bfloat16")
    return root, sum(value.numel() for value in policy.model.parameters())


def enough(monkeypatch, config, policy, sizes, free, directory):
    monkeypatch.setattr(free_space.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    try:
        require_start(config, policy, sizes, directory)
    except CoevoError as error:
        assert str(error).startswith(f"{directory}: the next revision of run '{directory.name}' needs ")
        assert "\n" not in str(error)
        return False
    return True


@pytest.mark.parametrize(("dtype", "state"), [("float32", 8), ("bfloat16", 12)])
def test_the_first_revisions_are_two_policies_and_an_optimizer(policies, tmp_path, monkeypatch, dtype, state):
    root, numbers = policies
    config, policy = load_recipe("homerules-coevo-rl", []), root / dtype
    needed = 2 * disk_usage(policy) + state * numbers
    assert enough(monkeypatch, config, policy, {}, needed, tmp_path)
    assert not enough(monkeypatch, config, policy, {}, needed - 1, tmp_path)


def test_a_resumed_run_needs_what_its_last_revision_took(policies, tmp_path, monkeypatch):
    policy = policies[0] / "float32"
    config, needed = load_recipe("homerules-coevo-rl", []), disk_usage(policy) + 5 * MIB
    assert enough(monkeypatch, config, policy, {"optimizer": 5 * MIB}, needed, tmp_path)
    assert not enough(monkeypatch, config, policy, {"optimizer": 5 * MIB}, needed - 1, tmp_path)


def test_a_frozen_policy_writes_none(policies, tmp_path, monkeypatch):
    config = load_recipe("homerules-coevo-rl", ["update=null"])
    assert enough(monkeypatch, config, policies[0] / "float32", {"policy": 1}, 0, tmp_path)
