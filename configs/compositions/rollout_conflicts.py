"""Conflicts of rollouts and prompts with policy, update, bank and placement."""

from collections.abc import Iterator

from coevo.configs.placement_config import SharedPlacement
from coevo.configs.rollout.engine_config import VllmEngineConfig
from coevo.configs.sections import RunSections


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of ``rollout.pace``, ``rollout.ahead``, the engine's ``sync`` and the prompt with other sections."""
    if config.rollout.pace == "episode" and config.rollout.engine.type != "vllm":
        yield (
            "rollout.pace=episode asks a server about each episode by itself: set rollout.engine.type=vllm, or "
            "rollout.pace=turn"
        )
    if config.rollout.ahead:
        yield from _ahead(config)
    yield from _sync(config)
    yield from _style(config)
    yield from _room(config)


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
