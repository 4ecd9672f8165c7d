"""Notices before a start: what a run does in another way than its user may expect, one line each."""

from typing import Any

from coevo.configs.bank.admission import notice
from coevo.configs.run import RunConfig
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.models.policy.card import CARD, ignored
from coevo.records.draws import key
from coevo.tasks.preflight.environment import guided, sampled


def notices(config: RunConfig, env: Environment[Any] | None = None) -> list[str]:
    """Notices of a run; empty if there is nothing to say.

    Args:
        config: its configuration.
        env: its environment if it is there; else it is made where a notice needs it.
    """
    unproven = None if config.bank is None else notice(config.bank.admission)
    return [*([unproven] if unproven else []), *_sampling(config), *_guide(config, env)]


def _sampling(config: RunConfig) -> list[str]:
    named = ignored(config.policy, config.rollout.sampling)
    if not named:
        return []
    return [f"the model's {CARD} sets {', '.join(named)}; the run does not follow it: see rollout.sampling"]


def _guide(config: RunConfig, env: Environment[Any] | None) -> list[str]:
    if config.context.style == "words":
        return []
    env = env or make(config.env)
    (task,) = sampled(env, 1, key(config.seed, "notices"))
    guide = guided(env, task)
    if guide.text or guide.tools:
        return []
    return [f"{env.name} has no guide: prompts do not say which actions exist; add Environment.guide"]
