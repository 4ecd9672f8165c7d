"""Seconds of turns and scores of their lessons, in small files of the run beside its revisions.

Seconds differ between repeated runs, so they are in no revision. Push, fsck and gc leave the files out, and a run needs
none of them: where one is missing or damaged, a page shows neither. ``turns/r12.parquet`` holds those of revision 12.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from coevo.lineage.workspace import RunPaths
from coevo.records.episode import Episode

FOLDER = "turns"
MAX_FILES = 1000
"""Most revisions whose figures are kept, the latest ones."""
FIGURES = pa.schema(
    [("id", pa.string()), ("seconds", pa.list_(pa.float64())), ("scores", pa.list_(pa.list_(pa.float64())))]
)


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """Figures of a turn.

    Attributes:
        seconds: from its prompt to the environment's answer; None if they were not measured.
        scores: score of each entry in its prompt, best first, None where retrieval gave none; empty if none are known.
    """

    seconds: float | None
    scores: tuple[float | None, ...]


def write_turn_figures(paths: RunPaths, revision: int, episodes: Iterable[Episode]) -> None:
    """Keep the figures of a revision's turns, in place of earlier ones, if there are any.

    Raises:
        OSError: the file cannot be written.
    """
    rows = [
        {
            "id": episode.id,
            "seconds": [turn.seconds for turn in episode.turns],
            "scores": [list(turn.lesson_scores) for turn in episode.turns],
        }
        for episode in episodes
        if any(turn.seconds is not None or turn.lesson_scores for turn in episode.turns)
    ]
    if not rows:
        return
    target = _file(paths, revision)
    target.parent.mkdir(exist_ok=True)
    fresh = target.with_suffix(".new")
    parquet.write_table(pa.Table.from_pylist(rows, schema=FIGURES), fresh, compression="zstd")
    fresh.replace(target)
    for old in sorted(target.parent.glob("r*.parquet"), key=_number)[:-MAX_FILES]:
        old.unlink(missing_ok=True)


def read_turn_figures(paths: RunPaths, revision: int, episode: str) -> list[TurnFigures]:
    """Figures of an episode's turns, in order; empty if they were not kept, or the file is not as coevo writes it."""
    try:
        table = parquet.read_table(_file(paths, revision), filters=[("id", "=", episode)], schema=FIGURES)
        (row,) = table.to_pylist()
        return [
            TurnFigures(_finite(spent), tuple(map(_finite, scores or ())))
            for spent, scores in zip(row["seconds"], row["scores"], strict=True)
        ]
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException):
        return []


def _file(paths: RunPaths, revision: int) -> Path:
    return paths.root / FOLDER / f"r{revision}.parquet"


def _number(file: Path) -> int:
    text = file.stem[1:]
    return int(text) if text.isascii() and text.isdecimal() else -1


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
