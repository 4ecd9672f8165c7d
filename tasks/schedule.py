"""The schedule: what an iteration may change (CoEvo-RL Table 3)."""

from dataclasses import dataclass

from configs.schedule import BankThenPolicyConfig, FrozenAfterFirstConfig, PolicyThenBankConfig, ScheduleConfig


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
        return {"schedule/learns": float(self.learns), "schedule/evolves": float(self.evolves)}


def phase_of(config: ScheduleConfig, iteration: int, entries: int) -> Phase:
    """The phase that an iteration, counted from 0, belongs to.

    Args:
        config: the run's schedule.
        iteration: which iteration.
        entries: active entries of the bank at its beginning.
    """
    match config:
        case PolicyThenBankConfig() if iteration < config.switch_at:
            return Phase(learns=True, evolves=False)
        case PolicyThenBankConfig():
            return Phase(learns=False, evolves=True, since=config.switch_at)
        case BankThenPolicyConfig() if iteration < config.switch_at:
            return Phase(learns=False, evolves=True)
        case BankThenPolicyConfig():
            return Phase(learns=True, evolves=False, since=config.switch_at)
        case FrozenAfterFirstConfig():
            # A firing that lets nothing in updates nothing: the writer is asked again.
            return Phase(learns=True, evolves=entries == 0)
        case _:
            return Phase(learns=True, evolves=True)
