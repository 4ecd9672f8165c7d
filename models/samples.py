"""Samples: the turns of an iteration's episodes as the rows that the update trains on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from records.arrow import IDS
from records.episode import Episode

SAMPLES: Final = pa.schema(
    [
        ("episode", pa.string()),
        ("group", pa.string()),
        ("turn", pa.int32()),
        ("prompt_ids", IDS),
        ("token_ids", IDS),
        ("logprobs", pa.list_(pa.float32())),
        ("advantage", pa.float64()),
    ]
)
"""One row a turn; ``group`` is the task id, ``logprobs`` are the engine's own."""


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """What became of the groups.

    Attributes:
        rows: samples written.
        groups: groups there were.
        skipped: groups left out because none of their episodes has an advantage: their returns are all equal.
    """

    rows: int
    groups: int
    skipped: int


def write_samples(path: Path, episodes: Sequence[Episode], advantages: NDArray[np.float64]) -> SampleCounts:
    """Write the update's rows as Parquet, in the order of episodes and turns.

    Args:
        path: the file.
        episodes: an iteration's rollouts.
        advantages: one an episode, in the same order; every turn of the episode gets it.
    """
    pairs = list(zip(episodes, advantages.tolist(), strict=True))
    groups = {episode.task.id for episode in episodes}
    taught = {episode.task.id for episode, advantage in pairs if advantage != 0.0}
    rows = [row for episode, advantage in pairs if episode.task.id in taught for row in _rows(episode, advantage)]
    pq.write_table(pa.Table.from_pylist(rows, schema=SAMPLES), path)
    return SampleCounts(rows=len(rows), groups=len(groups), skipped=len(groups - taught))


def _rows(episode: Episode, advantage: float) -> list[dict[str, object]]:
    return [
        {
            "episode": episode.id,
            "group": episode.task.id,
            "turn": index,
            "prompt_ids": turn.prompt_ids,
            "token_ids": turn.completion.token_ids,
            "logprobs": turn.completion.logprobs,
            "advantage": advantage,
        }
        for index, turn in enumerate(episode.turns)
    ]
