"""Conflicts of rollouts and prompts with policy, update, bank and placement.

A policy behind an endpoint has neither weights nor log-probabilities, which other sections need.
"""

from collections.abc import Iterator

from coevo.configs.adapter_config import FactoryConfig, McpConfig, VerifiersConfig
from coevo.configs.context_config import THINKING_OFF
from coevo.configs.placement_config import RayPlacement, SeparatePlacement, SharedPlacement
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.rollout.rollout_config import GatewaySourceConfig, VllmEngineConfig, gpus_of
from coevo.configs.sections import RunSections


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of the placement, of ``rollout.pace`` and ``rollout.ahead``, of ``sync`` and of the prompt."""
    yield from _placement(config)
    served = config.rollout.engine.type == "vllm" or config.policy.type == "endpoint"
    if config.rollout.pace == "episode" and not served:
        yield (
            "rollout.pace=episode asks a server about each episode by itself: set rollout.engine.type=vllm or "
            "policy.type=endpoint, or rollout.pace=turn"
        )
    if config.rollout.ahead:
        yield from _ahead(config)
    if config.rollout.gateway is not None:
        yield from _gateway(config, config.rollout.gateway)
    yield from _sync(config)
    yield from _style(config)
    yield from _room(config)
    yield from _last_turn(config)


def _last_turn(config: RunSections) -> Iterator[str]:
    """Environments that reward an episode at its end alone: a cut by the rollout would earn nothing."""
    turns = config.rollout.max_turns
    if isinstance(config.env, FactoryConfig | McpConfig | VerifiersConfig) and config.env.steps > turns:
        yield (
            f"rollout.max_turns={turns} ends episodes before env.steps={config.env.steps}, where they would be "
            f"rewarded: set env.steps={turns}, or rollout.max_turns={config.env.steps}"
        )


def _ahead(config: RunSections) -> Iterator[str]:
    if config.update is None:
        yield "rollout.ahead=1 plays during the update, but update=null has none: set rollout.ahead=0"
    elif config.update.loss.importance_cap is None:
        yield (
            "rollout.ahead=1 learns from episodes of the policy before the last update: correct for that with "
            "update.loss.importance_cap=2.0, or set rollout.ahead=0"
        )
    if config.rollout.turns is not None:
        yield (
            "rollout.turns continues the last batch's episodes, but rollout.ahead=1 plays whole ones: set "
            "rollout.turns=null, or rollout.ahead=0"
        )
    if isinstance(config.placement, SharedPlacement):
        yield (
            "placement.type=shared puts the servers to sleep during the update, but rollout.ahead=1 plays then: set "
            "placement.type=separate, or rollout.ahead=0"
        )


def _gateway(config: RunSections, source: GatewaySourceConfig) -> Iterator[str]:
    """Conflicts of agents with their own loop with what plays, tries or serves something else."""
    rollout, bank, update = config.rollout, config.bank, config.update
    if config.policy.type == "endpoint":
        yield "rollout.gateway trains on drawn tokens, which an endpoint does not give: set policy.type=pretrained"
    if rollout.ahead or rollout.turns is not None:
        name = "ahead=1" if rollout.ahead else f"turns={rollout.turns}"
        yield f"rollout.{name} plays episodes, but rollout.gateway leaves that to agents: leave one of them out"
    if config.lineage.every > 1:
        yield f"rollout.gateway serves committed policies: set lineage.every=1 in place of {config.lineage.every}"
    if bank is not None and bank.retrieval.type == "cluster":
        yield (
            "bank.retrieval.type=cluster links entries to what a rollout's turns have found, and rollout.gateway plays "
            "none: set another bank.retrieval.type"
        )
    if bank is not None and bank.retrieval.share < 1:
        yield "bank.retrieval.share divides the groups of a rollout, which rollout.gateway does not play: set it to 1.0"
    if bank is not None and bank.admission.type == "within-group":
        yield (
            "bank.admission.type=within-group divides the groups of a rollout, which rollout.gateway does not play: "
            "set bank.admission.type=replay"
        )
    if source.staleness and update is not None and update.loss.importance_cap is None:
        yield (
            f"rollout.gateway.staleness={source.staleness} learns from answers of earlier policies: correct for that "
            "with update.loss.importance_cap=2.0, or set rollout.gateway.staleness=0"
        )
    if update is not None and update.advantage.grouped and source.outcomes < 2:
        yield (
            f"rollout.gateway.outcomes=1 gives {update.advantage.type} no group to compare with: set it to 2 or more"
        )


def _sync(config: RunSections) -> Iterator[str]:
    engine, policy = config.rollout.engine, config.policy
    if isinstance(engine, VllmEngineConfig) and engine.sync != "files" and getattr(policy, "lora", None) is not None:
        yield (
            f"rollout.engine.sync={engine.sync} sends whole weights, but policy.lora trains adapters: "
            "set rollout.engine.sync=files"
        )


def _style(config: RunSections) -> Iterator[str]:
    style = config.context.style
    if config.policy.type == "scratch" and style != "words":
        yield f"context.style={style} needs a pretrained policy: set context.style=words"
    if style == "words" and config.context.placement == "turn":
        yield "context.placement=turn needs prose: set context.placement=task, or context.style=chat"


def _room(config: RunSections) -> Iterator[str]:
    context, policy = config.context, config.policy
    if config.bank is not None and context.experience_tokens == 0:
        yield "context.experience_tokens=0 shows nothing of the bank: set context.experience_tokens=200, or bank=null"
    answer = config.rollout.sampling.max_new_tokens
    if policy.type == "scratch" and context.experience_tokens + answer >= policy.max_positions:
        yield (
            f"context.experience_tokens={context.experience_tokens} and an answer of {answer} do not fit "
            f"policy.max_positions={policy.max_positions}: lower context.experience_tokens"
        )


def _placement(config: RunSections) -> Iterator[str]:
    """Conflicts of the placement with the devices that engine and update name."""
    placement = config.placement
    if isinstance(placement, SharedPlacement):
        yield from _shared(config)
    elif isinstance(placement, SeparatePlacement):
        yield from _separate(config, placement)
    elif isinstance(placement, RayPlacement):
        yield from _on_ray(config, placement)


def _shared(config: RunSections) -> Iterator[str]:
    yield from _servers(config, "shared")
    yield from _on_gpus(config, "shared")
    engine, update = config.rollout.engine, config.update
    if not isinstance(engine, VllmEngineConfig) or update is None or not engine.devices:
        return
    if update.deepspeed.processes > len(gpus_of(engine)):
        yield (
            f"placement.type=shared trains on the servers' GPUs, and rollout.engine.devices has {len(gpus_of(engine))} "
            f"for update.deepspeed.processes={update.deepspeed.processes}: give each process its own"
        )


def _separate(config: RunSections, placement: SeparatePlacement) -> Iterator[str]:
    yield from _servers(config, "separate")
    yield from _on_gpus(config, "separate")
    engine, update = config.rollout.engine, config.update
    if not isinstance(engine, VllmEngineConfig) or update is None:
        return
    taken = set(gpus_of(engine))
    both = sorted(taken & {str(gpu) for gpu in placement.update})
    if not taken:
        yield "placement.type=separate needs to know the servers' GPUs: set rollout.engine.devices, for example ['0']"
    if both:
        yield f"placement.update and rollout.engine.devices share GPU {both[0]}: give either its own, or type=shared"
    if len(set(placement.update)) != update.deepspeed.processes:
        yield (
            f"placement.update has {len(set(placement.update))} GPUs for update.deepspeed.processes="
            f"{update.deepspeed.processes}: give each process its own"
        )


def _servers(config: RunSections, kind: str) -> Iterator[str]:
    engine = config.rollout.engine
    if not isinstance(engine, VllmEngineConfig):
        yield (
            f"placement.type={kind} places servers, but rollout.engine.type={engine.type} has none: "
            "set rollout.engine.type=vllm"
        )
    elif engine.urls:
        yield (
            f"placement.type={kind} starts its servers here, but rollout.engine.urls names others: leave placement out"
        )


def _on_gpus(config: RunSections, kind: str) -> Iterator[str]:
    update = config.update
    if update is None:
        yield f"placement.type={kind} places an update, but update=null has none: leave placement out"
    elif update.deepspeed.device != "cuda":
        yield (
            f"placement.type={kind} trains on GPUs, but update.deepspeed.device={update.deepspeed.device}: "
            "set update.deepspeed.device=cuda"
        )


def _on_ray(config: RunSections, placement: RayPlacement) -> Iterator[str]:
    trainer, update, engine = placement.pools.trainer, config.update, config.rollout.engine
    if placement.pools.engines is not None:
        yield from _servers(config, "ray with pools.engines")
        if isinstance(engine, VllmEngineConfig) and (engine.devices or engine.sync in ("ipc", "nccl")):
            yield (
                "placement.pools.engines gives each server GPUs of its node: leave rollout.engine.devices out, and set "
                "rollout.engine.sync to files or gloo"
            )
    if trainer is None:
        return
    if update is None:
        yield "placement.pools.trainer places an update, but update=null has none: leave it out"
    elif (update.deepspeed.device == "cuda") != (trainer.gpus >= 1):
        yield (
            f"placement.pools.trainer.gpus={trainer.gpus:g} and update.deepspeed.device={update.deepspeed.device} do "
            "not agree: set gpus=1 and device=cuda, or gpus=0 and device=cpu"
        )


WITHOUT = "policy.type=endpoint has no weights here"


def endpoint_flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of the policy with what trains it, with its engine, and with its prompts."""
    if isinstance(config.policy, EndpointPolicyConfig):
        yield from _trained(config)
        yield from _placed(config)
        yield from _prompted(config)
        yield from _endpoint_room(config, config.policy)


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


def _endpoint_room(config: RunSections, policy: EndpointPolicyConfig) -> Iterator[str]:
    answer, lessons = config.rollout.sampling.max_new_tokens, config.context.experience_tokens
    if policy.context is not None and policy.context <= answer + lessons:
        yield (
            f"policy.context={policy.context} has no room for context.experience_tokens={lessons} and an answer of "
            f"{answer}: lower rollout.sampling.max_new_tokens or context.experience_tokens"
        )
