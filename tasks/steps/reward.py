"""Reward shaping: the worth of an iteration's episodes to the update."""

from collections.abc import Sequence
from dataclasses import dataclass

from coevo.configs.update.update_config import UpdateConfig
from coevo.models.rewards import reward
from coevo.models.rewards.rewards import Rewards
from coevo.records.episode import Episode
from coevo.tasks.draft import Result
from coevo.tasks.revision_artifacts import write_baselines
from coevo.tasks.session import Session
from coevo.tasks.stage import part_name, untracked
from coevo.tasks.steps.reflect import reflected


@dataclass(frozen=True, slots=True)
class Shaped:
    """Episodes with their shaping, and the rewards of their turns.

    Attributes:
        episodes: those that policy and bank learn from.
        rewards: theirs.
        rest: lost episodes, and those whose first prompt was too long.
    """

    episodes: list[Episode]
    rewards: Rewards
    rest: list[Episode]


@untracked("shape")
def shape(session: Session, episodes: Sequence[Episode]) -> Result[Shaped]:
    """Shape the episodes and raise the run's baselines. A frozen policy needs no shaping."""
    update = session.config.update or UpdateConfig()
    rest = [episode for episode in episodes if not episode.teaches]
    episodes = [episode for episode in episodes if episode.teaches]
    progress = reflected(session, episodes)
    rewards = reward(progress.value, update.invalid_penalty, update.reward, session.baselines)
    if rewards.baselines:
        session.baselines = dict(rewards.baselines)
        write_baselines(session.baselines, session.stores.paths.staging)
    extras = rewards.shaping.tolist()
    shaped = Shaped(
        [episode.with_shaping(extra) for episode, extra in zip(episodes, extras, strict=True)], rewards, rest
    )
    if session.config.update is None:
        return Result(shaped, progress.metrics, spent=progress.spent)
    worth = sum(episode.shaped for episode in shaped.episodes) / len(shaped.episodes)
    shaping = {f"policy/reward/{part_name(update.reward.type)}": worth, **rewards.metrics}
    return Result(shaped, {**progress.metrics, **shaping}, spent=progress.spent)
