"""Two real vLLM servers for the whole session, one with full weights and one with adapters; they start side by side."""

from contextlib import closing

import pytest
from support.policies import qwen

from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, VllmEngineConfig
from coevo.models.engines.vllm.vllm_engine import VllmEngine
from coevo.models.policy.policy import build, save
from coevo.records.draws import key

SAMPLING = SamplingConfig(temperature=0.7, max_new_tokens=8)


def tied(seed):
    """A small policy of a shape that vLLM takes."""
    return qwen(seed, init_std=0.1, hidden_size=64, heads=2, kv_heads=1, head_dim=32)


def adapted(base, seed):
    """Adapters, other than none, on the policy in a directory."""
    lora = LoraConfig(r=4, alpha=8)
    policy = build(PretrainedPolicyConfig(type="pretrained", path=str(base), lora=lora), (), key(seed))
    for name, weights in policy.model.named_parameters():
        if "lora_B" in name:
            weights.data.normal_(std=0.3)
    return policy


@pytest.fixture(scope="session")
def policies(tmp_path_factory):
    """Directories of policies by name."""
    root = tmp_path_factory.mktemp("policies")
    made = {"a": tied(1), "b": tied(2)}
    for name, policy in made.items():
        save(policy, root / name)
    for name, seed in (("lora-a", 3), ("lora-b", 4)):
        save(adapted(root / "a", seed), root / name)
    return root


@pytest.fixture(scope="session")
def engines(policies, tmp_path_factory):
    """An engine with a server of its own at ``a``, and one at ``lora-a``."""
    directory, config = tmp_path_factory.mktemp("engines"), VllmEngineConfig(type="vllm")
    with (
        closing(VllmEngine(policies / "a", config, SAMPLING, directory / "full")) as full,
        closing(VllmEngine(policies / "lora-a", config, SAMPLING, directory / "adapters")) as adapters,
    ):
        yield {"full": full, "adapters": adapters}


@pytest.fixture
def engine(engines, policies):
    """The one with full weights, at ``a``."""
    engines["full"].load(policies / "a")
    return engines["full"]
