"""Advantages of an iteration's tokens, by the configured estimator."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coevo.configs.update.advantage_config import AdvantageConfig
from coevo.configs.update.loss import LossConfig
from coevo.models.advantages import estimate
from coevo.models.advantages.groups import zero_variance
from coevo.models.advantages.trajectory import Advantages, Trajectory, roundings, totals
from coevo.models.rewards.rewards import Rewards
from coevo.records.episode import Episode, Turn
from coevo.records.metric_names import STREAK
from coevo.tasks.draft import Result
from coevo.tasks.session import Session
from coevo.tasks.stage import part_name, stage
from coevo.tasks.steps.reward import Shaped
from coevo.tasks.steps.trainer_scores import EpisodeScores, score
from coevo.tasks.steps.trial import group_of

HISTOGRAM = np.linspace(-3.0, 3.0, 13)
"""Edges of the advantage histogram; values beyond them count in the outer bins."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Targets of the update: advantages, and the critic's value before each token of each episode."""

    advantages: Advantages
    values: list[NDArray[np.float64]]


@stage("advantage")
def advantage(session: Session, shaped: Shaped) -> Result[Targets]:
    """Advantages from the episodes' shaped rewards and those of their groups."""
    update = session.config.update
    assert update is not None
    scores = score(session, shaped.episodes)
    groups = [group_of(session, episode) for episode in shaped.episodes]
    trajectories = trajectories_of(shaped.episodes, groups, shaped.rewards, scores, update.advantage)
    advantages = estimate(trajectories, update.advantage)
    flat = zero_variance(totals(trajectories), groups, roundings(trajectories))
    metrics = advantage_metrics(advantages.episodes, flat) | dict(advantages.metrics)
    metrics[f"policy/advantage/{part_name(update.advantage.type)}_spread"] = float(advantages.episodes.std())
    metrics |= _streak(session, nothing_to_compare(flat, groups, update.advantage))
    metrics |= score_metrics(shaped.episodes, scores, update.loss)
    return Result(Targets(advantages, [each.values for each in scores] if update.critic else []), metrics)


def nothing_to_compare(flat: NDArray[np.bool_], groups: Sequence[Hashable], config: AdvantageConfig) -> bool:
    """True if the estimator compares episodes within groups, and no group of several has any variance.

    Args:
        flat: mask of episodes whose group has no variance, [episodes].
        groups: group of each episode.
        config: of the estimator.
    """
    return config.grouped and len(set(groups)) < len(groups) and bool(flat.all())


def _streak(session: Session, flat: bool) -> dict[str, float]:
    """Number of iterations in a row without variance in any group, this one included; empty if it is none."""
    draft, head = session.draft.metrics, session.stores.lineage.head()
    before = draft if "policy/advantage/std" in draft or head is None else head.metrics
    if flat:
        return {STREAK: before.get(STREAK, 0.0) + 1}
    return {STREAK: 0.0} if STREAK in draft else {}  # of an earlier iteration of the same revision


def trajectories_of(
    episodes: Sequence[Episode],
    groups: Sequence[str],
    rewards: Rewards,
    scores: Sequence[EpisodeScores],
    config: AdvantageConfig,
) -> list[Trajectory]:
    """Input of the estimator; ``groups`` has the group of each episode.

    An episode that a turn limit ended is over, and nothing follows it: the limit is part of the task. Only one that
    continues in the next update has a value beyond its last turn.
    """
    return [
        Trajectory(
            group=group,
            value=episode.shaped,
            rewards=turns,
            lengths=tuple(len(turn.completion.token_ids) for turn in episode.turns),
            anchors=tuple(_anchor(turn, config) for turn in episode.turns),
            penalties=scored.penalties,
            values=scored.values,
            bootstrap=scored.bootstrap,
        )
        for episode, group, turns, scored in zip(episodes, groups, rewards.turns, scores, strict=True)
    ]


def _anchor(turn: Turn, config: AdvantageConfig) -> Hashable:
    """Key of a turn's observation; None if its cluster was not computed."""
    if config.type == "gigpo" and config.anchor == "cluster":
        return None if turn.cluster_id < 0 else turn.cluster_id
    return turn.observation


def score_metrics(episodes: Sequence[Episode], scores: Sequence[EpisodeScores], loss: LossConfig) -> dict[str, float]:
    """Mean value after unfinished episodes, and mean KL penalty where it is part of the reward."""
    beyond = [scored.bootstrap for episode, scored in zip(episodes, scores, strict=True) if episode.following]
    metrics = {"policy/critic/bootstrap": float(np.mean(beyond))} if beyond else {}
    if loss.kl_in == "reward":
        metrics["policy/reward/kl"] = float(np.mean([each.penalties.sum() for each in scores]))
    return metrics


def advantage_metrics(advantages: NDArray[np.float64], flat: NDArray[np.bool_]) -> dict[str, float]:
    """Spread and histogram of the advantages, and the share of episodes whose group had no variance."""
    counts, _ = np.histogram(np.clip(advantages, HISTOGRAM[0], HISTOGRAM[-1]), bins=HISTOGRAM)
    return {
        "policy/advantage/mean": float(advantages.mean()),
        "policy/advantage/std": float(advantages.std()),
        "policy/advantage/min": float(advantages.min()),
        "policy/advantage/max": float(advantages.max()),
        "policy/advantage/zero_variance_share": float(flat.mean()),
    } | {f"policy/advantage_histogram/from_{low:.1f}": float(n) for low, n in zip(HISTOGRAM[:-1], counts, strict=True)}
