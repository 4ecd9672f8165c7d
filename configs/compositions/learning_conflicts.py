"""Conflicts between rewards, advantages and loss, and with the rollouts that they are computed from."""

from collections.abc import Iterator

from coevo.configs.sections import RunSections
from coevo.configs.update.advantage_config import GigpoConfig, ReinforceConfig
from coevo.configs.update.reward_config import CapabilityEvolutionConfig

LEAST_TEMPERATURE = 0.01
"""Lowest temperature of vLLM, which raises any lower one to it."""
HEAD_DIMS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256)
"""Head sizes that vLLM has kernels for."""


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of the update with other sections."""
    yield from _comparable(config)
    yield from _alone(config)
    yield from _cut(config)
    yield from _distribution(config)
    yield from _potential(config)
    yield from _precision(config)
    yield from _served(config)


def _comparable(config: RunSections) -> Iterator[str]:
    """Check that the estimator has episodes to compare."""
    if config.update is None:
        return
    advantage, rollout = config.update.advantage, config.rollout
    if rollout.gateway is None and advantage.grouped and rollout.group_size < 2:
        yield f"rollout.group_size=1 gives {advantage.type} no group to compare with: set it to 2 or more"
    alone = rollout.tasks * rollout.group_size < 2
    if isinstance(advantage, ReinforceConfig) and advantage.baseline == "batch" and alone:
        yield "update.advantage.baseline=batch needs two episodes: set rollout.tasks=2 or more"
    if isinstance(advantage, GigpoConfig) and advantage.anchor == "cluster" and config.clusters is None:
        yield (
            "update.advantage.anchor=cluster needs observation clusters: set clusters.delta=0.85, "
            "or update.advantage.anchor=observation"
        )


def _alone(config: RunSections) -> Iterator[str]:
    """Check that the critic's warm-up ends before the run."""
    critic, total = config.update and config.update.critic, config.iterations
    if critic and 0 < total <= critic.warmup:
        yield (
            f"update.critic.warmup={critic.warmup} leaves the policy none of iterations={total}: "
            "set update.critic.warmup lower or iterations higher"
        )


def _cut(config: RunSections) -> Iterator[str]:
    """Check that a critic values episodes that are cut for an update, and that no group is compared."""
    update = config.update
    if config.rollout.turns is None:
        return
    if update is None or update.advantage.needs_critic is False:
        kind = "update=null" if update is None else f"update.advantage.type={update.advantage.type}"
        yield (
            f"rollout.turns cuts episodes, but {kind} has no value for the rest: "
            "set update.advantage.type=gae and update.critic={}, or rollout.turns=null"
        )
    elif update.reward.whole:
        yield (
            f"rollout.turns cuts episodes, but update.reward.type={update.reward.type} needs whole ones: "
            "set update.reward.type=extrinsic, or rollout.turns=null"
        )
    if config.rollout.group_size > 1:
        yield "rollout.turns plays tasks one by one: set rollout.group_size=1 and more rollout.tasks"
    if config.bank is not None and config.bank.retrieval.share < 1:
        yield "rollout.turns has no groups to divide: set bank.retrieval.share=1.0"


def _distribution(config: RunSections) -> Iterator[str]:
    sampling = config.rollout.sampling
    cut = sampling.top_p < 1 or sampling.top_k > 0
    if cut and config.update is not None and config.update.loss.importance_cap is None:
        yield (
            "the update samples from the full distribution: set rollout.sampling.top_p=1.0 and "
            "rollout.sampling.top_k=0, or correct for it with update.loss.importance_cap=2.0"
        )


def _potential(config: RunSections) -> Iterator[str]:
    reward = config.update and config.update.reward
    reflects = config.bank is not None and config.bank.writer.reflects is not False
    reads = isinstance(reward, CapabilityEvolutionConfig) and reward.potential == "reflection"
    if reads and not reflects:
        yield (
            "update.reward.potential=reflection needs a reflecting writer: set bank.writer.type=quote-reflection, "
            "or update.reward.potential=progress"
        )


def _precision(config: RunSections) -> Iterator[str]:
    policy = config.policy
    if config.update is None or policy.type != "pretrained" or policy.lora is not None:
        return
    if policy.dtype != "float32" and config.update.deepspeed.zero_stage == 0:
        yield (
            f"policy.dtype={policy.dtype} needs a float32 copy for the update, which zero_stage=0 does not keep: "
            "set update.deepspeed.zero_stage=1 or higher, policy.dtype=float32 or policy.lora={}"
        )


def _served(config: RunSections) -> Iterator[str]:
    """Check that vLLM can compute with these settings exactly."""
    if config.rollout.engine.type != "vllm":
        return
    policy, temperature = config.policy, config.rollout.sampling.temperature
    if temperature < LEAST_TEMPERATURE:
        yield (
            f"rollout.sampling.temperature={temperature:g} becomes {LEAST_TEMPERATURE} in vLLM: set "
            f"rollout.sampling.temperature={LEAST_TEMPERATURE}, or rollout.engine.type=transformers"
        )
    if policy.type == "scratch" and policy.head_dim not in HEAD_DIMS:
        yield (
            f"policy.head_dim={policy.head_dim} has no kernel in vLLM: set policy.head_dim=32, or "
            "rollout.engine.type=transformers"
        )
