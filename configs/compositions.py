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
    yield from _evidence(config)
    yield from _potential(config)
    yield from _discovery(config)


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


def _evidence(config: "RunConfig") -> Iterator[str]:
    """Writers find what they write from."""
    if config.bank is None:
        return
    writer, key, references = config.bank.writer, config.bank.key, config.bank.references
    if writer.type == "reflection" and writer.induction == "pairwise" and references == 0:
        yield (
            "bank.writer.induction=pairwise holds episodes against earlier ones, and bank.references=0 keeps none: "
            "set bank.references=4, or induction=single"
        )
    if writer.type == "skills" and key != "kind":
        yield f"bank.writer.type=skills writes for kinds of tasks, and bank.key={key}: set bank.key=kind"


def _potential(config: "RunConfig") -> Iterator[str]:
    reward = config.update and config.update.reward
    reflects = config.bank is not None and config.bank.writer.type == "reflection"
    if reward and reward.type == "capability-evolution" and reward.potential == "reflection" and not reflects:
        yield (
            "update.reward.potential=reflection needs somebody who reflects: set bank.writer.type=reflection, "
            "or potential=progress"
        )


def _discovery(config: "RunConfig") -> Iterator[str]:
    attempts, bank = config.evaluation.discovery, config.bank
    if attempts > 1 and bank is not None and bank.admission.type == "replay":
        yield (
            f"evaluation.discovery={attempts} counts attempts, and bank.admission.type=replay would play more of them: "
            "set bank.admission.type=append, or discovery=0"
        )
