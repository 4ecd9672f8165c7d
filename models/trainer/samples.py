"""Samples: the turns of an iteration's episodes as the rows that the update trains on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from coevo.models.advantages.trajectory import Advantages
from coevo.records.arrow import IDS
from coevo.records.episode import Episode
from coevo.records.writing import Drawn

FLOATS: Final = pa.list_(pa.float64())

SAMPLES: Final = pa.schema(
    [
        ("episode", pa.string()),
        ("group", pa.string()),
        ("turn", pa.int32()),
        ("prompt_ids", IDS),
        ("token_ids", IDS),
        ("logprobs", pa.list_(pa.float32())),
        ("advantage", FLOATS),
        ("value", FLOATS),
        ("return", FLOATS),
    ]
)
"""One row per turn; ``group`` is the task id, ``logprobs`` are the engine's own. The last three have one number per
token; ``value`` and ``return`` are empty without a critic, all three if the row is only to be scored.
"""

TOKEN_COLUMNS: Final = ("advantage", "value", "return")

SCORES: Final = pa.schema([("reference", FLOATS), ("values", FLOATS)])
"""One row per sample, one number per token; a column that was not requested has empty lists."""


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Counts of rows and groups.

    Attributes:
        rows: samples written.
        groups: number of groups.
        skipped: groups left out because none of their episodes has an advantage.
    """

    rows: int
    groups: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Scores:
    """The trainer's scores of some rows, one array [tokens] per row; empty lists if not requested.

    Attributes:
        reference: log-prob of each token under the frozen reference.
        values: the critic's value of the state before each token.
    """

    reference: list[NDArray[np.float64]]
    values: list[NDArray[np.float64]]


def write_samples(
    path: Path, episodes: Sequence[Episode], advantages: Advantages, values: Sequence[NDArray[np.float64]] = ()
) -> SampleCounts:
    """Write the update's rows as Parquet, in the order of episodes and turns.

    Args:
        path: the file.
        episodes: an iteration's rollouts.
        advantages: of them, in the same order.
        values: the critic's value before each token, one array [tokens] per episode; empty without a critic.
    """
    groups = {episode.task.id for episode in episodes}
    used = {episode.task.id for episode, enters in zip(episodes, advantages.used, strict=True) if enters}
    columns = {"advantage": advantages.tokens, "value": values, "return": advantages.returns}
    rows = [
        row
        for index, episode in enumerate(episodes)
        if advantages.used[index]
        for row in _rows(episode, {name: column[index] for name, column in columns.items() if len(column)})
    ]
    _write(path, rows)
    return SampleCounts(rows=len(rows), groups=len(groups), skipped=len(groups - used))


def write_answers(path: Path, answers: Sequence[Drawn], advantages: Sequence[Sequence[float]]) -> None:
    """Write the answers of the policy as writer as Parquet, one row each, every answer a group of its own.

    Args:
        path: the file.
        answers: their tokens.
        advantages: of each token of each answer.
    """
    _write(path, [_answer(number, *each) for number, each in enumerate(zip(answers, advantages, strict=True))])


def write_turns(path: Path, episodes: Sequence[Episode]) -> None:
    """Write all rows without advantages, for the trainer to score.

    A row for each episode that continues follows them: its next prompt, answered by a token without meaning.
    """
    played = [row for episode in episodes for row in _rows(episode, {})]
    _write(path, [*played, *(_next(episode) for episode in episodes if episode.following)])


def read_scores(path: Path) -> Scores:
    """Read the output of ``write_scores``."""
    columns = pq.read_table(path).to_pydict()
    return Scores(*([np.array(row, dtype=np.float64) for row in columns[name]] for name in SCORES.names))


def write_scores(path: Path, scores: Scores, rows: int) -> None:
    """Write scores as Parquet, one row per sample; scores that were not requested are empty lists."""
    nothing = [np.zeros(0)] * rows
    columns = {"reference": scores.reference or nothing, "values": scores.values or nothing}
    pq.write_table(pa.table(columns, schema=SCORES), path)


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema=SAMPLES), path)


def _next(episode: Episode) -> dict[str, object]:
    return {
        "episode": episode.id,
        "group": episode.task.id,
        "turn": episode.start + len(episode.turns),
        "prompt_ids": episode.following,
        "token_ids": episode.following[-1:],
        "logprobs": [0.0],
        **{name: [] for name in TOKEN_COLUMNS},
    }


def _answer(number: int, answer: Drawn, advantages: Sequence[float]) -> dict[str, object]:
    """Row of an answer; its loss does not read the engine's log-probs."""
    return {
        "episode": f"{number:06d}",
        "group": f"{number:06d}",
        "turn": 0,
        "prompt_ids": answer.prompt_ids,
        "token_ids": answer.token_ids,
        "logprobs": [0.0] * len(answer.token_ids),
        "advantage": advantages,
        "value": [],
        "return": [],
    }


def _rows(episode: Episode, tokens: Mapping[str, NDArray[np.float64]]) -> list[dict[str, object]]:
    """Rows of an episode, one per turn; ``tokens`` holds columns over all tokens of the episode."""
    ends = np.cumsum([len(turn.completion.token_ids) for turn in episode.turns])[:-1]
    columns = {name: np.split(values, ends) for name, values in tokens.items()}
    return [
        {
            "episode": episode.id,
            "group": episode.task.id,
            "turn": episode.start + index,
            "prompt_ids": turn.prompt_ids,
            "token_ids": turn.completion.token_ids,
            "logprobs": turn.completion.logprobs,
            **{name: columns[name][index] if name in columns else [] for name in TOKEN_COLUMNS},
        }
        for index, turn in enumerate(episode.turns)
    ]
