"""Episode and step advantages (GiGPO; SLEA-RL Eq. 5 and 6).

Steps of one task's episodes with the same state are compared by their discounted returns; a state that was seen once
gives no comparison.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from coevo.configs.update.advantage_config import GigpoConfig
from coevo.models.advantages.trajectory import (
    Advantages,
    Trajectory,
    centred,
    normalised,
    roundings,
    totals,
    used_rows,
    zero_variance,
)
from coevo.records.arrays import Floats
from coevo.utilities.errors import CoevoError


def advantages(trajectories: Sequence[Trajectory], config: GigpoConfig) -> Advantages:
    """A_episode + weight A_step, equal for every token of a step.

    Raises:
        CoevoError: the anchors are clusters, and none was computed.
    """
    groups = [each.group for each in trajectories]
    anchors = [(each.group, anchor) for each in trajectories for anchor in _own(each)]
    if config.anchor == "cluster" and anchors and all(isinstance(anchor, _Lone) for _, anchor in anchors):
        raise CoevoError("no turn has an observation cluster: set update.advantage.anchor=observation")
    returns = np.concatenate([step_returns(each.per_turn(), config.gamma) for each in trajectories] or [np.zeros(0)])
    turns, slack = [len(each.lengths) for each in trajectories], roundings(trajectories)
    per_turn = np.repeat(slack, turns)
    episodes = _relative(totals(trajectories), groups, slack, config)
    steps = _relative(returns, anchors, per_turn, config)
    combined = np.repeat(episodes, turns) + config.weight * steps
    by_turn = np.split(combined, np.cumsum(turns)[:-1])
    used = used_rows([bool(values.any()) for values in by_turn[: len(turns)]], groups, config.drop_zero_variance)
    tokens = [np.repeat(values, each.lengths) for values, each in zip(by_turn, trajectories, strict=False)]
    alone = zero_variance(returns, anchors, per_turn)
    metrics = {
        "policy/advantage/step_std": float(steps.std()) if steps.size else 0.0,
        "policy/advantage/step_alone_share": float(alone.mean()) if steps.size else 0.0,
    }
    return Advantages(episodes, tokens, used, centred=True, metrics=metrics)


def step_returns(rewards: Floats, gamma: float) -> Floats:
    """Sum over k >= t of gamma^(k-t) r_k for each turn t, [turns]."""
    returns, following = np.zeros(len(rewards)), 0.0
    for turn in range(len(rewards) - 1, -1, -1):
        following = rewards[turn] + gamma * following
        returns[turn] = following
    return returns


class _Lone:
    """Anchor that equals no other."""


def _own(trajectory: Trajectory) -> list[Hashable]:
    return [_Lone() if anchor is None else anchor for anchor in trajectory.anchors]


def _relative(values: Floats, groups: Sequence[Hashable], slack: Floats, config: GigpoConfig) -> Floats:
    if config.mode == "mean_norm":
        return centred(values, groups, slack)
    return normalised(values, groups, config.ddof, config.epsilon, slack)
