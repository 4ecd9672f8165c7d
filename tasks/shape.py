"""Reward shaping: what an iteration's episodes are worth to the update."""

from collections.abc import Sequence

from configs.update import UpdateConfig
from models.rewards import reward
from models.rewards.rewards import Rewards
from records.episode import Episode
from tasks.baselines import write_baselines
from tasks.reflect import reflected
from tasks.session import Session
from tasks.stage import part_name, untracked


@untracked("shape")
def shape(session: Session, episodes: Sequence[Episode]) -> tuple[list[Episode], Rewards]:
    """The episodes with their shaping, kept for writer and commit, and their turns' rewards.

    A frozen policy is told nothing and needs no shaping.
    """
    update = session.config.update or UpdateConfig()
    rewards = reward(reflected(session, episodes), update.invalid_penalty, update.reward, session.baselines)
    if rewards.baselines:
        session.baselines = dict(rewards.baselines)
        write_baselines(session.baselines, session.stores.paths.staging)
    shaped = [episode.with_shaping(extra) for episode, extra in zip(episodes, rewards.shaping.tolist(), strict=True)]
    session.remember(shaped)
    if session.config.update is not None:
        worth = sum(episode.shaped for episode in shaped) / len(shaped)
        session.draft.metrics |= {f"reward/{part_name(update.reward.type)}": worth, **rewards.metrics}
    return shaped, rewards
