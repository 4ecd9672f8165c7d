"""Sections of a run, each with its own settings. ``configs.run_config`` checks them together."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.bank.retrieval_config import ClustersConfig
from coevo.configs.base import MAX_COUNT, MAX_FACTOR, MAX_PROCESSES, MAX_ROWS, MAX_SEED, Config, FromAnywhere, named
from coevo.configs.context_config import ContextConfig
from coevo.configs.env import EnvConfig
from coevo.configs.placement_config import PlacementConfig
from coevo.configs.policy_config import PolicyConfig, WarmStartConfig
from coevo.configs.rollout.rollout_config import RolloutConfig
from coevo.configs.schedule_config import JointConfig, ScheduleConfig
from coevo.configs.trust_settings import Trusted
from coevo.configs.update.update_config import UpdateConfig

PanelName = Annotated[str, AfterValidator(named)]

LARGE_OPTIMIZER = 2**30
"""Bytes of optimizer state from which on not every revision keeps it (``lineage.optimizer_every``)."""


class ApprovalConfig(Config):
    """Decisions that a person makes; none by default."""

    admission: Literal["none", "person"] = "none"
    """``person``: a person decides on each change that the writer proposes to the bank; the run stops until then."""
    promotion: Literal["none", "person"] = "none"
    """``person``: a person decides if a packaged version that passed its gate becomes champion."""


NOTHING = ApprovalConfig()


class AlarmConfig(Config):
    """Limits at which a run warns."""

    unusable: float = Field(default=0.5, ge=0, le=1)
    """Share of an iteration's answers of which no action was used, or of the writer's that cannot be read.

    The run warns above it.
    """
    flat: int = Field(default=3, ge=1, le=MAX_COUNT)
    """Number of iterations in a row in which no group has different rewards; the run warns from then on."""
    idle: int = Field(default=5, ge=1, le=MAX_COUNT, exclude_if=lambda idle: idle == 5)
    """Number of the writer's firings in a row that propose nothing, or leave the bank as it was; the run warns then."""
    mismatch: float = Field(default=0.05, gt=0, le=MAX_FACTOR, exclude_if=lambda mismatch: mismatch == 0.05)
    """Mean distance of the engine's log-probs from the trainer's, per token, above which the run warns. It also warns
    where 1 % of the tokens are ten times as far apart.
    """


USUAL = AlarmConfig()


class EvaluationConfig(Config):
    """Held-out measurements; the bank is read-only in them."""

    every: int = Field(default=10, ge=1, le=MAX_COUNT)
    """Iterations between evaluations; the first and last revision are always evaluated."""
    panels: tuple[PanelName, ...] = Field(default=(), max_length=100)
    """Panels played at each evaluation; empty for the environment's first panel."""
    final_panels: tuple[PanelName, ...] = Field(default=(), max_length=100)
    """Additional panels of the first and the last evaluation."""
    tasks: int = Field(default=192, ge=1, le=MAX_ROWS)
    """Number of tasks per panel."""
    discovery: int = Field(default=0, ge=0, le=100)
    """Attempts per task of a panel (k of Discovery@k), with lessons from the failed ones; 0 disables it."""
    reflections: int = Field(default=0, ge=0, le=MAX_ROWS, exclude_if=lambda count: count == 0)
    """Number of a panel's episodes whose outcome the writer predicts; 0 asks for none."""
    internalization: int = Field(default=0, ge=0, le=MAX_COUNT, exclude_if=lambda every: every == 0)
    """Revisions between measurements of success with the best entry, none and a random one; 0 disables them."""
    retrieval: bool = Field(default=False, exclude_if=lambda measured: not measured)
    """Measure Hit@1, Hit@3 and MRR of the run's retrieval at each evaluation, by the size of the pool."""
    encoder: Annotated[str | None, Trusted("loads the model there"), FromAnywhere] = Field(
        default=None, exclude_if=lambda model: model is None
    )
    """Encoder of trajectories for their Vendi score, as ``bank.retrieval.encoder.model``; null counts words."""


class LineageConfig(Config):
    """Content of one revision."""

    every: int = Field(default=1, ge=1, le=MAX_COUNT)
    """Iterations per revision."""
    optimizer_every: int = Field(default=10, ge=1, le=MAX_COUNT, exclude_if=lambda every: every == 10)
    """Revisions per kept optimizer state from 1 GiB on; the last revision always keeps it. Below 1 GiB, all do."""
    held_out: int = Field(default=64, ge=0, le=10_000, exclude_if=lambda size: size == 64)
    """Most MiB of held-out episodes in a revision, before compression; the last tasks of a panel are left out first."""


class RunSections(Config):
    """Settings of a run, each valid by itself."""

    recipe: Annotated[str, Field(pattern=r"^[\w.\-]+$"), AfterValidator(named)]
    """Name of the recipe it came from."""
    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    """Root of every random draw."""
    iterations: int = Field(ge=0, le=MAX_COUNT)
    """Policy updates of the whole run."""
    env: EnvConfig
    """Environment of the agent."""
    policy: PolicyConfig
    """Model of the agent."""
    warmstart: WarmStartConfig | None = None
    """Cloning before the first iteration; null starts from the policy as it is."""
    context: ContextConfig = ContextConfig()
    """Content and format of the prompt."""
    rollout: RolloutConfig = RolloutConfig()
    """Number, length and engine of the episodes."""
    bank: BankConfig | None = BankConfig()
    """Experience of the agent; null for policy-only training."""
    clusters: ClustersConfig | None = None
    """Clusters of similar observations; null computes none."""
    update: UpdateConfig | None = UpdateConfig()
    """Policy update; null for a frozen policy."""
    schedule: ScheduleConfig = JointConfig()
    """Iterations that change policy and bank."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Held-out measurements."""
    lineage: LineageConfig = LineageConfig()
    """Size of a revision."""
    placement: PlacementConfig | None = Field(default=None, exclude_if=lambda placement: placement is None)
    """Devices of the run; null leaves them to the sections of engine and update."""
    approval: ApprovalConfig = Field(default=NOTHING, exclude_if=lambda approval: approval == NOTHING)
    """Decisions that wait for a person."""
    alarm: AlarmConfig = Field(default=USUAL, exclude_if=lambda alarm: alarm == USUAL)
    """Limits at which the run warns."""

    python_path: Annotated[tuple[str, ...], Trusted("imports from there")] = Field(
        default=(), max_length=MAX_PROCESSES, exclude_if=lambda folders: not folders
    )
    """Folders of your own modules, searched after the installed packages. A relative path starts at the command's
    working directory and is stored as an absolute one.
    """
