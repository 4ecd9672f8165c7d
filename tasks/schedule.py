"""The schedule: what an iteration may change (CoEvo-RL Table 3), and the steps that are due in it."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from coevo.configs.outside_part import Part, build
from coevo.configs.run_config import RunConfig
from coevo.configs.schedule_config import (
    BankThenPolicyConfig,
    FrozenAfterFirstConfig,
    JointConfig,
    OutsideScheduleConfig,
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


class SchedulePart(Part):
    """A schedule of your own for ``schedule``: what each iteration may change.

    It is asked several times in an iteration, and equal arguments give equal answers: a resumed run asks again.
    """

    setting: ClassVar[str] = OutsideScheduleConfig.setting

    @abstractmethod
    def phase(self, iteration: int, entries: int) -> Phase:
        """Phase that an iteration belongs to.

        Args:
            iteration: counted from 0.
            entries: active entries of the bank at the beginning of the iteration.
        """


SCHEDULES = Registry[Callable[[ScheduleConfig, int, int], Phase]](
    "schedule.type",
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
    if isinstance(config, OutsideScheduleConfig):
        part: SchedulePart = build(config)
        return part.phase(iteration, entries)
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


@dataclass(frozen=True, slots=True)
class Due:
    """Steps that are due in an iteration.

    Attributes:
        config: of the run.
        revision: revision in the making; 0 is the one before the first iteration.
        iteration: iterations that are done.
        entries: active entries of the bank.
        trains: whether the run has a trainer.
    """

    config: RunConfig
    revision: int
    iteration: int
    entries: int
    trains: bool

    def phase(self) -> Phase:
        """Phase of the schedule."""
        return phase_of(self.config.schedule, self.iteration, self.entries)

    def policy(self) -> bool:
        """Return True if this iteration updates the policy."""
        return self.trains and self.phase().learns

    def critic_alone(self) -> bool:
        """Return True while the critic warms up and the policy is not updated."""
        update = self.config.update
        return update is not None and update.critic is not None and self.iteration < update.critic.warmup

    def bank(self) -> bool:
        """Return True if the bank learns from this iteration."""
        return self.config.bank is not None and self.phase().evolves

    def writer(self) -> bool:
        """Return True if the writer fires in this iteration (every Delta iterations, CoEvo-RL section 3.4)."""
        bank = self.config.bank
        return bank is not None and self.bank() and (self.iteration + 1 - self.phase().since) % bank.every == 0

    def is_warm(self) -> bool:
        """Return True if this iteration is played with the bank, as those after ``bank.retrieval.warmup`` are."""
        return self.config.bank is None or self.iteration >= self.config.bank.retrieval.warmup

    def evaluation(self) -> bool:
        """Return True if this iteration plays the held-out panels."""
        done = self.iteration + 1
        return done % self.config.evaluation.every == 0 or done == self.config.iterations

    def internalization(self) -> bool:
        """Return True if this iteration ends a revision that measures the internalization curve, or the run."""
        every, done = self.config.evaluation.internalization, self.iteration + 1
        if not every or not self.commit():
            return False
        return self.revision % every == 0 or done == self.config.iterations

    def panels(self) -> tuple[str, ...]:
        """Panels of this evaluation; the first and the last one play more of them."""
        evaluation = self.config.evaluation
        ends = self.revision == 0 or self.iteration + 1 == self.config.iterations
        return evaluation.panels + (evaluation.final_panels if ends else ())

    def commit(self) -> bool:
        """Return True if this iteration ends its revision."""
        done = self.iteration + 1
        return done % self.config.lineage.every == 0 or done == self.config.iterations
