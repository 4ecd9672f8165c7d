"""Reward shaping: what is added to the extrinsic reward before advantages are computed."""

from collections.abc import Sequence

from configs.update import UpdateConfig
from records.episode import Episode


def shape(episodes: Sequence[Episode], config: UpdateConfig | None) -> list[Episode]:
    """Episodes with the penalty for turns that were not understood; a frozen policy needs none."""
    penalty = 0.0 if config is None else config.invalid_penalty
    return [episode.with_shaping(-penalty * sum(not turn.valid for turn in episode.turns)) for episode in episodes]
