"""Advantages of an iteration's tokens, by the configured estimator."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.advantage import AdvantageConfig
from models.advantages import estimate
from models.advantages.groups import zero_variance
from models.advantages.trajectory import Advantages, Trajectory, totals
from models.rewards.rewards import Rewards
from records.episode import Episode, Turn
from tasks.score import EpisodeScores, score
from tasks.session import Session
from tasks.stage import part_name, stage

HISTOGRAM = np.linspace(-3.0, 3.0, 13)
"""Edges of the advantage histogram; values beyond them count in the outer bins."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What the update is told: advantages, and what the critic said before each token of each episode."""

    advantages: Advantages
    values: list[NDArray[np.float64]]


@stage("advantage")
def advantage(session: Session, episodes: Sequence[Episode], rewards: Rewards) -> Targets:
    """Advantages from the episodes' shaped rewards and those of their groups."""
    update = session.config.update
    assert update is not None
    scores = score(session, episodes)
    trajectories = trajectories_of(episodes, rewards, scores, update.advantage)
    advantages = estimate(trajectories, update.advantage)
    flat = zero_variance(totals(trajectories), [each.group for each in trajectories])
    session.draft.metrics |= advantage_metrics(advantages.episodes, flat) | dict(advantages.metrics)
    session.draft.metrics[f"advantage/{part_name(update.advantage.type)}_spread"] = float(advantages.episodes.std())
    beyond = [scored.bootstrap for episode, scored in zip(episodes, scores, strict=True) if episode.following]
    if beyond:
        session.draft.metrics["critic/bootstrap"] = float(np.mean(beyond))
    if update.loss.kl_in == "reward":
        session.draft.metrics["reward/kl"] = float(np.mean([each.penalties.sum() for each in scores]))
    return Targets(advantages, [each.values for each in scores] if update.critic else [])


def trajectories_of(
    episodes: Sequence[Episode], rewards: Rewards, scores: Sequence[EpisodeScores], config: AdvantageConfig
) -> list[Trajectory]:
    """What the estimator sees of the episodes.

    An episode that a turn limit ended is over, and nothing follows it: the limit is part of the task. Only one that
    goes on in the next update has a value beyond its last turn.
    """
    return [
        Trajectory(
            group=episode.task.id,
            value=episode.shaped,
            rewards=turns,
            lengths=tuple(len(turn.completion.token_ids) for turn in episode.turns),
            anchors=tuple(_anchor(turn, config) for turn in episode.turns),
            penalties=scored.penalties,
            values=scored.values,
            bootstrap=scored.bootstrap,
        )
        for episode, turns, scored in zip(episodes, rewards.turns, scores, strict=True)
    ]


def _anchor(turn: Turn, config: AdvantageConfig) -> Hashable:
    """What tells a turn's observation apart; None where its cluster was not computed."""
    if config.type == "gigpo" and config.anchor == "cluster":
        return None if turn.cluster_id < 0 else turn.cluster_id
    return turn.observation


def advantage_metrics(advantages: NDArray[np.float64], flat: NDArray[np.bool_]) -> dict[str, float]:
    """Spread and histogram of the advantages, and the share of episodes whose group had no variance."""
    counts, _ = np.histogram(np.clip(advantages, HISTOGRAM[0], HISTOGRAM[-1]), bins=HISTOGRAM)
    return {
        "advantage/mean": float(advantages.mean()),
        "advantage/std": float(advantages.std()),
        "advantage/min": float(advantages.min()),
        "advantage/max": float(advantages.max()),
        "advantage/zero_variance_share": float(flat.mean()),
    } | {f"advantage_histogram/from_{low:.1f}": float(n) for low, n in zip(HISTOGRAM[:-1], counts, strict=True)}
