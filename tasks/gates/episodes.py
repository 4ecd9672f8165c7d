"""Gates on rollouts: episodes and turns before rewards use them, advantages before the policy is updated."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from coevo.models.advantages.trajectory import Advantages
from coevo.records.arrow import episodes_to_table
from coevo.records.episode import Episode, Turn
from coevo.tasks.gates.frame_gate import Check, expect, hold


@dataclass(frozen=True)
class EpisodeLimits:
    """Limits of training episodes.

    Attributes:
        group_size: episodes per task; None for any number.
        reward_range: bounds of an episode's extrinsic return.
        max_new_tokens: longest completion, in tokens.
        max_positions: longest sequence (prompt and completion) of the model, in tokens.
        held_out: ids of the tasks of evaluation panels.
        held_out_data: digests of the data of these tasks, see ``Task.data_digest``; agents choose the rest of an id.
        known: True if the engine knows the policy's tokens and their log-probabilities; an endpoint has neither.
    """

    group_size: int | None
    reward_range: tuple[float, float]
    max_new_tokens: int
    max_positions: int
    held_out: frozenset[str] = field(default_factory=frozenset)
    held_out_data: frozenset[str] = field(default_factory=frozenset)
    known: bool = True


def check_episodes(episodes: Sequence[Episode], limits: EpisodeLimits, quarantine: Path) -> None:
    """Hold back episodes that are not whole groups of training episodes within the limits.

    Raises:
        GateError: an expectation does not hold.
    """
    checks = [_episodes(episodes, limits), _turns(episodes, limits)]
    hold("episodes", checks, lambda: episodes_to_table(episodes), quarantine)


def check_advantages(episodes: Sequence[Episode], advantages: Advantages, quarantine: Path) -> None:
    """Hold back advantages that are not finite, or not centred although the estimator centres them.

    Raises:
        GateError: an expectation does not hold.
    """
    frame = _by_group(episodes, advantages)
    rules = [expect().ExpectColumnValuesToBeInSet(column="finite", value_set=[True])]
    if advantages.centred:
        rules.append(expect().ExpectColumnValuesToBeBetween(column="group_mean", min_value=-1e-6, max_value=1e-6))
    hold("advantages", [Check("episodes", frame, rules)], lambda: pa.Table.from_pandas(frame), quarantine)


REMEDIES = {
    "episode": "let the environment's sample return different tasks",
    "reward": "scale the environment's rewards, or set its reward_range",
    "split": "let the environment's sample return tasks of the split train",
    "held_out": "let the environment's sample leave out the tasks of its panels",
}
"""By column of the episodes, for what an environment decides; `coevo envs check` tries all of them."""


def _by_group(episodes: Sequence[Episode], advantages: Advantages) -> pd.DataFrame:
    """Advantage of each episode with the mean of its group."""
    frame = pd.DataFrame(
        {
            "episode": [episode.id for episode in episodes],
            "task": [episode.task.id for episode in episodes],
            "advantage": advantages.episodes,
            "finite": [bool(np.isfinite(tokens).all()) for tokens in advantages.tokens],
        }
    )
    frame["group_mean"] = frame.groupby("task")["advantage"].transform("mean")
    return frame


def _episodes(episodes: Sequence[Episode], limits: EpisodeLimits) -> Check:
    replicas: dict[str, set[int]] = defaultdict(set)
    for episode in episodes:
        replicas[episode.task.id].add(episode.replica)
    frame = pd.DataFrame(
        {
            "episode": [episode.id for episode in episodes],
            "group_size": [len(replicas[episode.task.id]) for episode in episodes],
            "played": [bool(episode.turns or episode.lost or episode.cut) for episode in episodes],
            "reward": [episode.reward for episode in episodes],
            "split": [episode.task.split for episode in episodes],
            "held_out": [episode.task.id in limits.held_out for episode in episodes],
        }
    )
    low, high = limits.reward_range
    rules = [
        expect().ExpectColumnValuesToBeUnique(column="episode"),
        expect().ExpectColumnValuesToBeInSet(column="played", value_set=[True]),
        expect().ExpectColumnValuesToNotBeNull(column="reward"),
        expect().ExpectColumnValuesToBeBetween(column="reward", min_value=low, max_value=high),
        expect().ExpectColumnValuesToBeInSet(column="split", value_set=["train"]),
        expect().ExpectColumnValuesToBeInSet(column="held_out", value_set=[False]),
    ]
    if limits.group_size is not None:
        rules.append(expect().ExpectColumnValuesToBeInSet(column="group_size", value_set=[limits.group_size]))
    return Check("episodes", frame, rules, REMEDIES)


def _turns(episodes: Sequence[Episode], limits: EpisodeLimits) -> Check:
    frame = pd.DataFrame(
        [_turn(episode.id, number, turn) for episode in episodes for number, turn in enumerate(episode.turns)],
        columns=["episode", "turn", "prompt", "completion", "sequence", "logprobs", "finite_logprobs", "top_logprob"],
    )
    rules = [expect().ExpectColumnValuesToBeBetween(column=column, min_value=1) for column in ("prompt", "completion")]
    if not limits.known:
        return Check("turns", frame, rules)
    rules += [
        expect().ExpectColumnValuesToBeBetween(column="completion", max_value=limits.max_new_tokens),
        expect().ExpectColumnValuesToBeBetween(column="sequence", max_value=limits.max_positions),
        expect().ExpectColumnPairValuesToBeEqual(column_A="completion", column_B="logprobs"),
        expect().ExpectColumnValuesToBeInSet(column="finite_logprobs", value_set=[True]),
        expect().ExpectColumnValuesToBeBetween(column="top_logprob", max_value=0),
    ]
    return Check("turns", frame, rules)


def _turn(episode: str, number: int, turn: Turn) -> tuple[str | int | float | bool, ...]:
    prompt, completion = len(turn.prompt_ids), len(turn.completion.token_ids)
    logprobs = turn.completion.logprobs
    finite, top = all(map(math.isfinite, logprobs)), max(logprobs, default=0.0)
    return episode, number, prompt, completion, prompt + completion, len(logprobs), finite, top
