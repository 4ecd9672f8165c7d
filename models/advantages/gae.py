"""Generalised advantage estimation with dual discounting (Context-lite Eq. 2).

Only action tokens count: an observation is one step of the environment, so the first token of the next turn follows the
last token of a turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coevo.configs.update.advantage_config import GaeConfig
from coevo.models.advantages.trajectory import Advantages, Trajectory, rounding, varies
from coevo.records.arrays import Floats


@dataclass(frozen=True, slots=True)
class Decay:
    """Discount and trace decay within a turn and between turns."""

    gamma_step: float
    lambda_step: float
    gamma_token: float
    lambda_token: float


def advantages(trajectories: Sequence[Trajectory], config: GaeConfig) -> Advantages:
    """Advantages of tokens from the critic's values, and the critic's targets.

    All episodes enter the update. Its metrics judge the values, which were computed before the update: the variance
    that they explain of the critic's targets, and of the discounted rewards that followed, with a value only at a cut.
    """
    decay = Decay(config.gamma_step, config.lambda_step, config.gamma_token, config.lambda_token)
    raw = [gae(token_rewards(each), each.values, each.lengths, each.bootstrap, decay) for each in trajectories]
    returns = [each.values + values for each, values in zip(trajectories, raw, strict=True)]
    slack = [rounding(each.values, each.bootstrap, each.rewards, each.penalties) for each in trajectories]
    tokens = whitened(raw, max(slack, default=0.0)) if config.whiten else raw
    return Advantages(
        episodes=np.array([values.mean() for values in tokens], dtype=np.float64),
        tokens=tokens,
        used=np.ones(len(tokens), dtype=np.bool_),
        centred=False,
        returns=returns,
        metrics={
            "policy/critic/explained_variance": _explained(trajectories, returns),
            "policy/critic/forecast_variance": _explained(trajectories, _followed(trajectories, decay)),
        },
    )


def gae(rewards: Floats, values: Floats, lengths: Sequence[int], bootstrap: float, decay: Decay) -> Floats:
    """Advantage of each action token, [tokens].

    Args:
        rewards: of each token, [tokens].
        values: of the state before each token, [tokens].
        lengths: tokens of each turn.
        bootstrap: value of the state after the last token; 0 after a true end.
        decay: its token pair applies from t to t + 1 within a turn, its step pair between turns.
    """
    last = np.zeros(len(values), dtype=np.bool_)
    last[np.cumsum(lengths) - 1] = True
    gammas = np.where(last, decay.gamma_step, decay.gamma_token)
    lambdas = np.where(last, decay.lambda_step, decay.lambda_token)
    deltas = rewards + gammas * np.append(values[1:], bootstrap) - values
    result, following = np.zeros(len(values)), 0.0
    for token in range(len(values) - 1, -1, -1):
        following = deltas[token] + gammas[token] * lambdas[token] * following
        result[token] = following
    return result


def token_rewards(trajectory: Trajectory) -> Floats:
    """Reward of each turn on its last token, minus the KL penalty of each token, [tokens]."""
    rewards = np.zeros(trajectory.tokens)
    rewards[np.cumsum(trajectory.lengths) - 1] = trajectory.rewards
    return rewards - trajectory.penalties if trajectory.penalties.size else rewards


def whitened(advantages: Sequence[Floats], slack: float | None = None) -> list[Floats]:
    """Scale to mean 0 and standard deviation 1 over all tokens; equal ones, or a single one, become 0.

    Args:
        advantages: of each token, one array [tokens] per episode.
        slack: largest difference that rounding of rewards and values explains; None takes it from the advantages.
    """
    every = np.concatenate([np.zeros(0), *advantages])
    if not varies(every, slack):
        return [np.zeros(len(values)) for values in advantages]
    return [(values - every.mean()) / (every.std(ddof=1) + 1e-8) for values in advantages]


def explained_variance(values: Floats, returns: Floats) -> float:
    """1 - Var(returns - values) / Var(returns); 0 if the returns do not vary."""
    return 1.0 - float((returns - values).var()) / float(returns.var()) if varies(returns) else 0.0


def _explained(trajectories: Sequence[Trajectory], returns: Sequence[Floats]) -> float:
    """Explained variance over all tokens; 0 without tokens."""
    return (
        explained_variance(np.concatenate([each.values for each in trajectories]), np.concatenate(returns))
        if returns
        else 0.0
    )


def _followed(trajectories: Sequence[Trajectory], decay: Decay) -> list[Floats]:
    """Targets with a trace decay of 1."""
    whole = Decay(decay.gamma_step, 1.0, decay.gamma_token, 1.0)
    return [
        each.values + gae(token_rewards(each), each.values, each.lengths, each.bootstrap, whole)
        for each in trajectories
    ]
