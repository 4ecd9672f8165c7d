"""Conflicts of a policy behind an endpoint, which has neither weights nor log-probabilities, with other sections."""

from collections.abc import Iterator

from coevo.configs.context_config import THINKING_OFF
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.sections import RunSections

WITHOUT = "policy.type=endpoint has no weights here"


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of the policy with what trains it, with its engine, and with its prompts."""
    if isinstance(config.policy, EndpointPolicyConfig):
        yield from _trained(config)
        yield from _placed(config)
        yield from _prompted(config)
        yield from _room(config, config.policy)


def _trained(config: RunSections) -> Iterator[str]:
    if config.update is not None:
        yield (
            f"update needs log-probabilities and changes weights, and {WITHOUT}: set update=null, or policy.type to "
            "pretrained or scratch"
        )
    if config.warmstart is not None and config.warmstart.steps:
        yield f"warmstart clones into weights, and {WITHOUT}: set warmstart=null"


def _placed(config: RunSections) -> Iterator[str]:
    if config.rollout.engine.type != "transformers":
        engine = f"rollout.engine.type={config.rollout.engine.type}"
        yield f"{engine} serves weights, and {WITHOUT}: leave rollout.engine out"
    if config.placement is not None:
        yield f"placement.type={config.placement.type} places weights, and {WITHOUT}: leave placement out"


def _prompted(config: RunSections) -> Iterator[str]:
    context, sampling = config.context, config.rollout.sampling
    if context.style == "words":
        yield (
            "context.style=words is the form of policies that learn it in a warm start: for policy.type=endpoint set "
            "context.style=conversation or chat"
        )
    if context.template != THINKING_OFF:
        yield (
            "context.template has the options of a chat template here, and that of policy.type=endpoint is at the "
            "endpoint: set policy.extra={chat_template_kwargs: {...}}"
        )
    if sampling.top_k:
        yield (
            f"rollout.sampling.top_k={sampling.top_k} is no field of chat completions: set rollout.sampling.top_k=0, "
            f"and policy.extra={{top_k: {sampling.top_k}}} if the endpoint knows it"
        )


def _room(config: RunSections, policy: EndpointPolicyConfig) -> Iterator[str]:
    answer, lessons = config.rollout.sampling.max_new_tokens, config.context.experience_tokens
    if policy.context is not None and policy.context <= answer + lessons:
        yield (
            f"policy.context={policy.context} has no room for context.experience_tokens={lessons} and an answer of "
            f"{answer}: lower rollout.sampling.max_new_tokens or context.experience_tokens"
        )
