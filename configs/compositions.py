"""Parts of different sections that do not go together, each with the reason and the remedy."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from configs.schedule import BankThenPolicyConfig, PolicyThenBankConfig

if TYPE_CHECKING:
    from configs.run import RunConfig


def flaws(config: "RunConfig") -> Iterator[str]:
    """What keeps the parts of a run from working together, one line a flaw."""
    yield from _schedule(config)
    yield from _prompt(config)
    yield from _halves(config)
    yield from _precision(config)


def _schedule(config: "RunConfig") -> Iterator[str]:
    kind = config.schedule.type
    if kind == "joint":
        return
    for section, missing in {"bank": config.bank is None, "update": config.update is None}.items():
        if missing:
            yield (
                f"schedule.type={kind} changes policy and bank in turn, and {section}=null leaves one of them out: "
                f"leave schedule out, or set {section}"
            )
            return
    yield from _room(config)


def _room(config: "RunConfig") -> Iterator[str]:
    """Whether either phase of a staged schedule comes to what it is for."""
    schedule, bank, total = config.schedule, config.bank, config.iterations
    assert bank is not None
    growing = total
    if isinstance(schedule, PolicyThenBankConfig | BankThenPolicyConfig):
        if schedule.switch_at % config.lineage.every:
            yield (
                f"schedule.switch_at={schedule.switch_at} must be a multiple of lineage.every={config.lineage.every}: "
                "a phase begins with a revision"
            )
        if 0 < total <= schedule.switch_at:
            yield (
                f"schedule.switch_at={schedule.switch_at} leaves its second phase none of iterations={total}: "
                "set schedule.switch_at lower or iterations higher"
            )
        growing = total - schedule.switch_at if isinstance(schedule, PolicyThenBankConfig) else schedule.switch_at
    if total > 0 and 0 < growing < bank.every:
        yield (
            f"schedule.type={schedule.type} grows the bank for {growing} iterations, and bank.every={bank.every} fires "
            f"the writer in none of them: set bank.every={growing} or lower"
        )


def _prompt(config: "RunConfig") -> Iterator[str]:
    context, policy = config.context, config.policy
    if config.bank is not None and context.experience_tokens == 0:
        yield "context.experience_tokens=0 shows nothing of the bank: set context.experience_tokens=200, or bank=null"
    answer = config.rollout.sampling.max_new_tokens
    if policy.type == "scratch" and context.experience_tokens + answer >= policy.max_positions:
        yield (
            f"context.experience_tokens={context.experience_tokens} and an answer of {answer} do not fit "
            f"policy.max_positions={policy.max_positions}: lower context.experience_tokens"
        )


def _halves(config: "RunConfig") -> Iterator[str]:
    if config.bank is None:
        return
    share, group = config.bank.retrieval.share, config.rollout.group_size
    for count, reached, whole in ((0, "none", 0.0), (group, "all", 1.0)):
        if 0 < share < 1 and round(share * group) == count:
            yield (
                f"bank.retrieval.share={share} of rollout.group_size={group} is {reached} of them: "
                f"set bank.retrieval.share={whole}, or a larger rollout.group_size"
            )


def _precision(config: "RunConfig") -> Iterator[str]:
    policy = config.policy
    if config.update is None or policy.type != "pretrained" or policy.lora is not None:
        return
    if policy.dtype != "float32":
        yield (
            f"policy.dtype={policy.dtype} cannot be updated, the trainer computes in float32: "
            "set policy.dtype=float32, policy.lora={} or update=null"
        )
