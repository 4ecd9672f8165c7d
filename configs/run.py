"""A run: everything that decides what it computes. Its hash identifies the experiment."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from configs.approval import NOTHING, ApprovalConfig
from configs.bank import BankConfig
from configs.base import FEW, MANY, ROWS, SEED, Config
from configs.compositions import flaws
from configs.context import ContextConfig
from configs.env import EnvConfig
from configs.placement import PlacementConfig
from configs.policy import PolicyConfig, WarmStartConfig
from configs.retrieval import ClustersConfig
from configs.rollout import RolloutConfig
from configs.schedule import JointConfig, ScheduleConfig
from configs.trust import Trusted, is_stored
from configs.update import UpdateConfig


class EvaluationConfig(Config):
    """Held-out measurements; the bank is read-only in them."""

    every: int = Field(default=10, ge=1, le=MANY)
    """Iterations between evaluations; the first and last revision are always evaluated."""
    panels: tuple[str, ...] = Field(default=("seen-houses",), min_length=1, max_length=100)
    """Panels played at each evaluation."""
    final_panels: tuple[str, ...] = Field(default=(), max_length=100)
    """Panels played besides in the first and the last one."""
    tasks: int = Field(default=192, ge=1, le=ROWS)
    """Tasks of a panel."""
    discovery: int = Field(default=0, ge=0, le=100)
    """Attempts at each task of a panel (k of Discovery@k), lessons of the failed ones being told; 0 leaves it out."""


class LineageConfig(Config):
    """What one revision holds."""

    every: int = Field(default=1, ge=1, le=MANY)
    """Iterations in one revision."""


class RunConfig(Config):
    """The resolved configuration of a run."""

    recipe: str = Field(pattern=r"^[\w.\-]+$")
    """Name of the recipe it came from."""
    seed: int = Field(default=0, ge=0, le=SEED)
    """Root of every random draw."""
    iterations: int = Field(ge=0, le=MANY)
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
    schedule: ScheduleConfig = JointConfig()
    """When policy and bank change."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """How it is measured."""
    lineage: LineageConfig = LineageConfig()
    """How it is kept."""
    placement: PlacementConfig | None = Field(default=None, exclude_if=lambda placement: placement is None)
    """On which devices; null leaves it to the sections of engine and update."""
    approval: ApprovalConfig = Field(default=NOTHING, exclude_if=lambda approval: approval == NOTHING)
    """What waits for a person."""

    python_path: Annotated[tuple[str, ...], Trusted("imports from there")] = Field(
        default=(), max_length=FEW, exclude_if=lambda folders: not folders
    )
    """Folders of your own modules, searched after the installed packages; a relative one is taken from where the
    command runs, and kept as an absolute one."""

    @field_validator("python_path")
    @classmethod
    def _absolute(cls, folders: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not is_stored(info):
            return tuple(str(Path(folder).expanduser().absolute()) for folder in folders)
        relative = next((folder for folder in folders if not Path(folder).is_absolute()), None)
        if relative is not None:
            raise ValueError(f"{relative!r} depends on where the command runs: write an absolute path")
        return folders

    @model_validator(mode="after")
    def _composed(self) -> Self:
        flaw = next(flaws(self), None)
        if flaw is not None:
            raise ValueError(flaw)
        return self

    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON of what decides the results: all but ``iterations``."""
        return digest(self.model_dump(mode="json", exclude={"iterations"}))


def digest(value: object) -> str:
    """SHA-256 (hex) of a JSON-serialisable value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
