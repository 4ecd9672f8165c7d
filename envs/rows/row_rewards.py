"""Rewards of answers: each function's value is checked, and they add up by their weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from coevo.configs.rows_config import RowRewardConfig, RowsConfig
from coevo.envs.failures import EpisodeFailure
from coevo.envs.rows.function_pool import CallOutcome, FunctionCalls, FunctionPool
from coevo.envs.rows.task_table import Row


@dataclass(frozen=True, slots=True)
class RowReward:
    """Reward of one answer.

    Attributes:
        total: weighted sum.
        scores: name and value of each reward, before weighting.
    """

    total: float
    scores: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        each = ", ".join(f"{name} {value:g}" for name, value in self.scores)
        return f"reward {self.total:g}" if len(self.scores) == 1 else f"reward {self.total:g}: {each}"


def least_reward(config: RowsConfig) -> RowReward:
    """Reward of an episode without an answer: the worst value of each reward."""
    return _added(config, [each.low if each.weight > 0 else each.high for each in config.reward])


def rewards_of(
    config: RowsConfig, pool: FunctionPool, answers: Sequence[tuple[str, Row]]
) -> list[RowReward | EpisodeFailure]:
    """Reward of each answer to its row, or the first failure of a reward function."""
    items = [(answer, dict(row)) for answer, row in answers]
    columns = pool.call([FunctionCalls(each, items) for each in config.reward])
    found: list[RowReward | EpisodeFailure] = []
    for outcomes in zip(*columns, strict=True):
        values = [_value(each, outcome) for each, outcome in zip(config.reward, outcomes, strict=True)]
        failed = next((value for value in values if isinstance(value, EpisodeFailure)), None)
        found.append(failed or _added(config, [value for value in values if not isinstance(value, EpisodeFailure)]))
    return found


def _value(config: RowRewardConfig, outcome: CallOutcome | EpisodeFailure) -> float | EpisodeFailure:
    title: str = getattr(config, "title", "")
    if isinstance(outcome, EpisodeFailure):
        return EpisodeFailure(outcome.kind, f"reward {title}: {outcome.detail}")
    if not isinstance(outcome.value, float):
        return EpisodeFailure("invalid", f"reward {title}: it returned no number")
    if not isfinite(outcome.value) or not config.low <= outcome.value <= config.high:
        return EpisodeFailure(
            "invalid",
            f"reward {title}: it returned {outcome.value:g}, which is not between low={config.low:g} and "
            f"high={config.high:g}",
        )
    return outcome.value


def _added(config: RowsConfig, values: Sequence[float]) -> RowReward:
    """Sum in the order of the list, as the range of rewards is: rounding then never leads out of it."""
    total = sum(each.weight * value for each, value in zip(config.reward, values, strict=True))
    scores = tuple((each.title, value) for each, value in zip(config.reward, values, strict=True))
    return RowReward(float(total), scores)
