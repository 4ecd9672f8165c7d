"""Weights of a server whose probe is known, in place of one that a policy computes."""

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm.expected import Weights


def known(directory, adapter, probe):
    """Weights of files in a directory, which has no policy."""
    weights = Weights(directory, directory, adapter, VllmEngineConfig(type="vllm"), probe.temperature)
    weights.__dict__["_probe"] = probe
    return weights
