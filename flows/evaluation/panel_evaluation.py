"""Evaluation of a revision on a panel: what is requested, and its result."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coevo.envs.base import Environment
from coevo.flows.history.played_episodes import without_side
from coevo.records.episode import Episode, played
from coevo.records.task import Panel
from coevo.utilities.errors import CoevoError

BANKS = ("own", "none", "random")
"""Banks other than those of other runs."""


@dataclass(frozen=True)
class EvaluationRequest:
    """Evaluation to carry out.

    Attributes:
        panel: name of the panel; by default the first of the run's evaluations. ``training`` has the tasks of the
            revision's training episodes.
        tasks: number of its tasks; by default as in the run's own evaluations.
        bank: ``own``, ``none`` (measures what the policy has internalised), ``random`` (entries of the own bank, drawn
            independently of the task), or the bank of another ``RUN[@N]`` (measures transfer).
        discovery: attempts per task (k of Discovery@k); 0 for one attempt without writing.
        without: ids of entries of the own bank that are left out.
        iteration: iteration whose world is played, where it drifts; None for the revision's own.
        keeps: True to keep the episodes for the pages of ``coevo watch``.
    """

    panel: str | None = None
    tasks: int | None = None
    bank: str = "own"
    discovery: int = 0
    without: tuple[str, ...] = ()
    iteration: int | None = None
    keeps: bool = False

    @property
    def side(self) -> str:
        """Bank that is played, in words."""
        return without_side(self.without) if self.without else f"bank {self.bank}"


@dataclass(frozen=True)
class Evaluation:
    """Result of one revision on one panel.

    Attributes:
        panel: the panel.
        episodes: one per task, in the panel's order.
        discovery: share of the tasks solved within k attempts, by k.
        vendi: Vendi score of the ``successes`` and of the ``failures``, see ``coevo.memory.vendi_score``.
    """

    panel: Panel
    episodes: Sequence[Episode]
    discovery: Mapping[int, float]
    vendi: Mapping[str, float] = field(default_factory=dict)

    @property
    def success(self) -> float:
        """Success rate of the episodes that the environment did not lose; 0 if it lost all."""
        return sum(episode.success for episode in self.episodes) / max(1, len(played(self.episodes)))

    @property
    def stderr(self) -> float:
        """Standard error of the success rate over tasks; it does not say how far another seed would differ."""
        return math.sqrt(self.success * (1 - self.success) / max(1, len(played(self.episodes))))

    def by_kind(self) -> dict[str, "Evaluation"]:
        """Results per kind of task, by name."""
        kinds = sorted({episode.task.kind for episode in self.episodes})
        return {kind: Evaluation(self.panel, [e for e in self.episodes if e.task.kind == kind], {}) for kind in kinds}


def check_panel(env: Environment[object], panel: str) -> None:
    """Make sure that an environment has a panel.

    Raises:
        CoevoError: it has none of this name.
    """
    if panel not in env.panels:
        raise CoevoError(f"{panel!r} is no panel of {env.name}: choose one of {', '.join(env.panels)}")
