"""A run: everything that decides what it computes. Its hash identifies the experiment."""

import hashlib
import json
from typing import Self

from pydantic import Field, model_validator

from configs.bank import BankConfig
from configs.base import Config
from configs.context import ContextConfig
from configs.env import EnvConfig
from configs.policy import PolicyConfig, WarmStartConfig
from configs.retrieval import ClustersConfig
from configs.rollout import RolloutConfig
from configs.update import UpdateConfig
from configs.writer import SCORING_WRITERS


class EvaluationConfig(Config):
    """Held-out measurements; the bank is read-only in them."""

    every: int = Field(default=10, ge=1)
    """Iterations between evaluations; the first and last revision are always evaluated."""
    panels: tuple[str, ...] = ("seen-houses",)
    """Panels played at each evaluation."""
    final_panels: tuple[str, ...] = ()
    """Panels played besides in the first and the last one."""
    tasks: int = Field(default=192, ge=1)
    """Tasks of a panel."""


class LineageConfig(Config):
    """What one revision holds."""

    every: int = Field(default=1, ge=1)
    """Iterations in one revision."""


class RunConfig(Config):
    """The resolved configuration of a run."""

    recipe: str = Field(pattern=r"^[\w.\-]+$")
    """Name of the recipe it came from."""
    seed: int = Field(default=0, ge=0)
    """Root of every random draw."""
    iterations: int = Field(ge=0)
    """Policy updates of the whole run."""
    env: EnvConfig
    """Where the agent acts."""
    policy: PolicyConfig
    """What acts."""
    warmstart: WarmStartConfig | None = None
    """Cloning before the first iteration; null starts from the policy as it is."""
    context: ContextConfig = ContextConfig()
    """What the policy is shown."""
    rollout: RolloutConfig = RolloutConfig()
    """How it acts."""
    bank: BankConfig | None = BankConfig()
    """Its experience; null for policy-only training."""
    clusters: ClustersConfig | None = None
    """Which observations count as one; null computes no clusters."""
    update: UpdateConfig | None = UpdateConfig()
    """How it learns; null for a frozen policy."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """How it is measured."""
    lineage: LineageConfig = LineageConfig()
    """How it is kept."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.bank is None and self.update is None and self.iterations > 0:
            raise ValueError("bank=null and update=null leave nothing to learn: set one of them or iterations=0")
        if self.bank is not None and self.bank.every % self.lineage.every:
            raise ValueError(
                f"bank.every={self.bank.every} must be a multiple of lineage.every={self.lineage.every}: "
                "the bank changes only at the end of a revision"
            )
        if self.bank is not None and self.bank.retrieval.type == "cluster" and self.clusters is None:
            raise ValueError("bank.retrieval.type=cluster needs observation clusters: set clusters.delta=0.85")
        if self.policy.type == "scratch" and self.context.style == "chat":
            raise ValueError("context.style=chat needs a pretrained policy: set context.style=words")
        return self

    @model_validator(mode="after")
    def _scored(self) -> Self:
        """Admission by score finds what it ranks by, and leaves room for a bank that may be shown."""
        if self.bank is None or self.bank.admission.type != "score":
            return self
        writer, capacity, least = self.bank.writer.type, self.bank.admission.capacity, self.bank.retrieval.min_entries
        if writer not in SCORING_WRITERS:
            raise ValueError(
                f"bank.writer.type={writer} does not say what an entry is worth, which bank.admission.type=score ranks "
                f"by: set writer.type to one of {', '.join(SCORING_WRITERS)}, or another admission.type"
            )
        # Three levels of either zone, or strategies without a level.
        most = 3 * (capacity.strategy + capacity.warning) if writer == "extremes" else capacity.strategy
        if most <= least:
            raise ValueError(
                f"bank.admission.capacity has room for {most} entries, and bank.retrieval.min_entries={least} shows "
                "the bank only while it holds more: set a larger capacity or fewer min_entries"
            )
        return self

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        """The estimator finds what it compares with."""
        if self.update is None:
            return self
        advantage, rollout = self.update.advantage, self.rollout
        if advantage.grouped and rollout.group_size < 2:
            raise ValueError(
                f"rollout.group_size=1 gives {advantage.type} no group to compare with: set it to 2 or more"
            )
        if advantage.type == "reinforce" and advantage.baseline == "batch" and rollout.tasks * rollout.group_size < 2:
            raise ValueError("update.advantage.baseline=batch needs two episodes: set rollout.tasks=2 or more")
        if advantage.type == "gigpo" and advantage.anchor == "cluster" and self.clusters is None:
            raise ValueError(
                "update.advantage.anchor=cluster needs observation clusters: set clusters.delta=0.85, "
                "or anchor=observation"
            )
        return self

    @model_validator(mode="after")
    def _full_distribution(self) -> Self:
        sampling = self.rollout.sampling
        cut = sampling.top_p < 1 or sampling.top_k > 0
        if cut and self.update is not None and self.update.loss.importance_cap is None:
            raise ValueError(
                "the update samples from the full distribution: set rollout.sampling.top_p=1.0 and top_k=0, "
                "or correct for it with update.loss.importance_cap=2.0"
            )
        return self

    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON of what decides the results: all but ``iterations``."""
        return digest(self.model_dump(mode="json", exclude={"iterations"}))


def digest(value: object) -> str:
    """SHA-256 (hex) of a JSON-serialisable value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
