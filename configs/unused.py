"""Settings without effect beside others, one line each."""

from collections.abc import Iterator

from coevo.configs.bank.admission_config import WithinGroupAdmissionConfig
from coevo.configs.bank.bank_config import BankConfig, RetirementConfig
from coevo.configs.bank.writer import asked_model
from coevo.configs.run_config import RunConfig


def unused(config: RunConfig) -> Iterator[str]:
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


def _rewards(config: RunConfig, reward: str) -> Iterator[str]:
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


def _predictions(config: RunConfig) -> Iterator[str]:
    """Say that a run counts predictions of what the question tells."""
    if not config.evaluation.reflections or config.bank is None:
        return
    if getattr(config.bank.writer, "told", "outcome") == "outcome":
        yield (
            "evaluation.reflections counts right predictions of an outcome that the question names: set "
            "bank.writer.type=model-reflection and bank.writer.told=nothing"
        )
