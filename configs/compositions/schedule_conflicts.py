"""Conflicts of the schedule: both policy and bank must get their turn."""

from collections.abc import Iterator

from coevo.configs.schedule_config import BankThenPolicyConfig, PolicyThenBankConfig
from coevo.configs.sections import RunSections


def flaws(config: RunSections) -> Iterator[str]:
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
    yield from _room(config)


def _room(config: RunSections) -> Iterator[str]:
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
