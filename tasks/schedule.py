"""The schedule: what an iteration may change (CoEvo-RL Table 3)."""

from collections.abc import Callable
from dataclasses import dataclass

from coevo.configs.schedule_config import (
    BankThenPolicyConfig,
    FrozenAfterFirstConfig,
    JointConfig,
    PolicyThenBankConfig,
    ScheduleConfig,
)
from coevo.utilities.part_registry import Registry


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a run in which the same things change.

    Attributes:
        learns: whether the policy is updated.
        evolves: whether the bank is.
        since: iteration that it begins with; firings of the writer are counted from there.
    """

    learns: bool
    evolves: bool
    since: int = 0

    def metrics(self) -> dict[str, float]:
        """The phase in figures."""
        return {"policy/learns": float(self.learns), "bank/evolves": float(self.evolves)}


SCHEDULES = Registry[Callable[[ScheduleConfig, int, int], Phase]](
    "schedule.type",
    "coevo.schedules",
    {
        "joint": "coevo.tasks.schedule:joint",
        "policy-then-bank": "coevo.tasks.schedule:policy_then_bank",
        "bank-then-policy": "coevo.tasks.schedule:bank_then_policy",
        "frozen-after-first": "coevo.tasks.schedule:frozen_after_first",
    },
)


def phase_of(config: ScheduleConfig, iteration: int, entries: int) -> Phase:
    """The phase that an iteration belongs to.

    Args:
        config: the run's schedule.
        iteration: counted from 0.
        entries: active entries of the bank at the beginning of the iteration.
    """
    return SCHEDULES.load(config.type)(config, iteration, entries)


def joint(config: JointConfig, iteration: int, entries: int) -> Phase:
    """Policy and bank change in every iteration."""
    return Phase(learns=True, evolves=True)


def policy_then_bank(config: PolicyThenBankConfig, iteration: int, entries: int) -> Phase:
    """The policy changes first, then the bank."""
    if iteration < config.switch_at:
        return Phase(learns=True, evolves=False)
    return Phase(learns=False, evolves=True, since=config.switch_at)


def bank_then_policy(config: BankThenPolicyConfig, iteration: int, entries: int) -> Phase:
    """The bank changes first, then the policy."""
    if iteration < config.switch_at:
        return Phase(learns=False, evolves=True)
    return Phase(learns=True, evolves=False, since=config.switch_at)


def frozen_after_first(config: FrozenAfterFirstConfig, iteration: int, entries: int) -> Phase:
    """The policy always changes, the bank only until its first update."""
    # A firing that admits nothing is no update: the writer is asked again.
    return Phase(learns=True, evolves=entries == 0)
