"""Schedules: iterations that update the policy, and iterations that may change the bank, selected by ``type``."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from coevo.configs.base import MAX_COUNT, Config
from coevo.configs.outside_part import OutsidePartConfig, PartChoice


class JointConfig(Config):
    """Policy and bank evolve together, the bank every ``bank.every`` iterations (CoEvo-RL Algorithm 1)."""

    type: Literal["joint"] = "joint"
    """Name of the schedule."""


class PolicyThenBankConfig(Config):
    """Policy training without experience, then bank growth under the frozen policy (P→E of CoEvo-RL Table 3)."""

    type: Literal["policy-then-bank"]
    """Name of the schedule."""
    switch_at: int = Field(ge=1, le=MAX_COUNT)
    """Iterations that train the policy; later ones grow the bank."""


class BankThenPolicyConfig(Config):
    """Bank growth under a frozen policy, then policy training with the fixed bank (E→P of CoEvo-RL Table 3)."""

    type: Literal["bank-then-policy"]
    """Name of the schedule."""
    switch_at: int = Field(ge=1, le=MAX_COUNT)
    """Iterations that grow the bank; later ones train the policy."""


class FrozenAfterFirstConfig(Config):
    """Policy training in every iteration with a bank that is fixed after its first update (JERP's ablation, Fig. 3)."""

    type: Literal["frozen-after-first"]
    """Name of the schedule."""


class OutsideScheduleConfig(OutsidePartConfig):
    """A schedule from another package: a class derived from ``coevo.SchedulePart``."""

    setting: ClassVar[str] = "schedule"
    group: ClassVar[str] = "coevo.schedules"


ScheduleConfig = Annotated[
    JointConfig | PolicyThenBankConfig | BankThenPolicyConfig | FrozenAfterFirstConfig | OutsideScheduleConfig,
    PartChoice(),
]
