"""Checks across sections: parts that cannot work together, with the remedy, and settings without effect."""

from collections.abc import Iterator

from coevo.configs.bank.admission_config import WithinGroupAdmissionConfig
from coevo.configs.bank.bank_config import BankConfig, RetirementConfig
from coevo.configs.bank.writer import asked_model
from coevo.configs.compositions import bank_conflicts, learning_conflicts, rollout_conflicts
from coevo.configs.schedule_config import BankThenPolicyConfig, PolicyThenBankConfig
from coevo.configs.sections import RunSections


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts between the sections of a run, one line each."""
    yield from schedule_flaws(config)
    yield from rollout_conflicts.endpoint_flaws(config)
    yield from learning_conflicts.flaws(config)
    yield from bank_conflicts.flaws(config)
    yield from bank_conflicts.writer_model_flaws(config)
    yield from rollout_conflicts.flaws(config)


def schedule_flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of the schedule with iterations, bank and update."""
    yield from _idle(config)
    yield from _ends(config)
    yield from _staged(config)


def _idle(config: RunSections) -> Iterator[str]:
    if config.bank is None and config.update is None and config.iterations > 0:
        yield "bank=null and update=null leave nothing to learn: set one of them or iterations=0"


def _ends(config: RunSections) -> Iterator[str]:
    if config.bank is not None and config.bank.every % config.lineage.every:
        yield (
            f"bank.every={config.bank.every} must be a multiple of lineage.every={config.lineage.every}: "
            "the bank changes only at the end of a revision"
        )


def _staged(config: RunSections) -> Iterator[str]:
    kind = config.schedule.type
    if kind == "joint":
        return
    for section, missing in {"bank": config.bank is None, "update": config.update is None}.items():
        if missing:
            yield (
                f"schedule.type={kind} changes policy and bank in turn, but {section}=null leaves one of them out: "
                f"leave schedule out, or set {section}"
            )
            return
    yield from _phases(config)


def _phases(config: RunSections) -> Iterator[str]:
    """Check that both phases of a staged schedule can do their work."""
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
            f"schedule.type={schedule.type} grows the bank for {growing} iterations, but bank.every={bank.every} never "
            f"fires the writer in them: set bank.every={growing} or lower"
        )


def unused(config: RunSections) -> Iterator[str]:
    """Say which settings of a run have no effect, and what would give them one."""
    if config.bank is not None:
        yield from _retirement(config.bank)
        yield from _writer_model(config.bank)
        yield from _trials(config.bank, config.iterations)
    if config.update is not None and config.update.writer is not None:
        yield from _rewards(config, config.update.writer.reward)
    yield from _predictions(config)


def _retirement(bank: BankConfig) -> Iterator[str]:
    found = bank.retirement
    if found is None:
        return
    if not found.entries and found.unseen is None and found.capacity is None:
        yield "bank.retirement retires nothing: set its entries, unseen or capacity, or bank.retirement=null"
    elif not found.entries and _changed(found, "delta", "replays"):
        said = "bank.retirement.entries=0 replays no entry, so that delta and replays have no effect"
        yield f"{said}: set bank.retirement.entries=4"
    if found.capacity is None and _changed(found, "beyond"):
        yield f"bank.retirement.beyond={found.beyond} has no effect without a bound: set bank.retirement.capacity"


def _changed(found: RetirementConfig, *names: str) -> bool:
    return any(getattr(found, name) != RetirementConfig.model_fields[name].default for name in names)


def _writer_model(bank: BankConfig) -> Iterator[str]:
    writer_model = asked_model(bank.writer)
    if writer_model is None:
        return
    if writer_model.budget is not None and writer_model.budget.tokens is None and writer_model.budget.cost is None:
        yield "bank.writer.model.budget bounds nothing: set its tokens or cost"
    if writer_model.price is not None and (writer_model.budget is None or writer_model.budget.cost is None):
        yield "bank.writer.model.price has no effect without a bound of the cost: set bank.writer.model.budget.cost"


def _trials(bank: BankConfig, iterations: int) -> Iterator[str]:
    if isinstance(bank.admission, WithinGroupAdmissionConfig) and 0 < iterations <= bank.admission.iterations:
        yield (
            f"no trial ends in iterations={iterations}, so that nothing enters the bank: set bank.admission.iterations "
            f"lower than {bank.admission.iterations}, or more iterations"
        )


def _rewards(config: RunSections, reward: str) -> Iterator[str]:
    """Say where replays reward the policy as writer and no update learns from that."""
    if config.bank is None or reward != "replay":
        return
    wanted, kind = "update.writer.reward=replay learns from a firing in the next update", config.schedule.type
    if kind != "joint":
        yield f"{wanted}, and schedule.type={kind} has few or no firings before one: set schedule.type=joint"
    elif 0 < config.iterations <= config.bank.every:
        yield (
            f"{wanted}, and none follows in iterations={config.iterations}: set bank.every lower than "
            f"{config.bank.every}, or more iterations"
        )


def _predictions(config: RunSections) -> Iterator[str]:
    """Say that a run counts predictions of what the question tells."""
    if not config.evaluation.reflections or config.bank is None:
        return
    if getattr(config.bank.writer, "reveal_outcome", True):
        yield (
            "evaluation.reflections counts right predictions of an outcome that the question names: set "
            "bank.writer.type=model-reflection and bank.writer.reveal_outcome=false"
        )
