"""Schedules: which iterations update the policy and which may change the bank. The union is told apart by ``type``."""

from typing import Annotated, Literal

from pydantic import Field

from configs.base import MANY, Config


class JointConfig(Config):
    """Policy and bank evolve together, the bank every ``bank.every`` iterations (CoEvo-RL Algorithm 1)."""

    type: Literal["joint"] = "joint"
    """Who changes when."""


class PolicyThenBankConfig(Config):
    """The policy is trained without experience, then frozen while the bank evolves (P→E of CoEvo-RL Table 3)."""

    type: Literal["policy-then-bank"]
    """Who changes when."""
    switch_at: int = Field(ge=1, le=MANY)
    """Iterations that train the policy; those after them grow the bank."""


class BankThenPolicyConfig(Config):
    """The bank is grown under a frozen policy, then fixed while the policy is trained (E→P of CoEvo-RL Table 3)."""

    type: Literal["bank-then-policy"]
    """Who changes when."""
    switch_at: int = Field(ge=1, le=MANY)
    """Iterations that grow the bank; those after them train the policy."""


class FrozenAfterFirstConfig(Config):
    """The policy is always trained; the bank stays as its first update leaves it (ablation of JERP, its Fig. 3)."""

    type: Literal["frozen-after-first"]
    """Who changes when."""


ScheduleConfig = Annotated[
    JointConfig | PolicyThenBankConfig | BankThenPolicyConfig | FrozenAfterFirstConfig, Field(discriminator="type")
]
