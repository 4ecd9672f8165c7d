"""Seconds of turns, scores of their lessons and what lessons had to do with failures of training, beside the revisions.

Seconds differ between repeated runs, so they are in no revision. Push, fsck and gc leave the files out, and a run needs
none of them: where one is missing or damaged, a page shows neither. ``turns/r12.parquet`` holds those of revision 12.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from coevo.lineage.workspace import RunPaths
from coevo.records.episode import Episode
from coevo.records.failure_reasons import LessonUse

FOLDER = "turns"
MAX_FILES = 1000
"""Most revisions whose figures are kept, the latest ones."""
FIGURES = pa.schema(
    [
        ("id", pa.string()),
        ("seconds", pa.list_(pa.float64())),
        ("scores", pa.list_(pa.list_(pa.float64()))),
        ("drawing", pa.list_(pa.float64())),
        ("lessons", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """Figures of a turn.

    Attributes:
        seconds: from its prompt to the environment's answer; None if they were not measured.
        scores: score of each entry in its prompt, best first, None where retrieval gave none; empty if none are known.
        drawing: seconds of them in which the policy drew its answer; None if they were not measured.
    """

    seconds: float | None
    scores: tuple[float | None, ...]
    drawing: float | None = None


FiguresByEpisode = dict[str, list[TurnFigures]]
"""Figures of turns, by the id of their episode."""


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
            "drawing": [turn.drawing for turn in episode.turns],
            "lessons": episode.lesson_use or None,
        }
        for episode in episodes
        if episode.lesson_use or any(turn.seconds is not None or turn.lesson_scores for turn in episode.turns)
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
    return _by_episode(row for row in _rows(paths, revision) if row["id"] == episode).get(episode, [])


def read_lesson_uses(paths: RunPaths, revision: int) -> dict[str, str]:
    """Part of the lessons in each failed training episode, by id, where it was kept: a ``LessonUse``."""
    known = {str(each) for each in LessonUse}
    rows = _rows(paths, revision, columns=("id", "lessons"))
    return {row["id"]: row["lessons"] for row in rows if row["lessons"] in known}


def with_turn_figures(paths: RunPaths, revision: int, episodes: Iterable[Episode]) -> list[Episode]:
    """Stored episodes of a revision, with the figures of their turns where they were kept."""
    rows = _rows(paths, revision)
    known, uses = _by_episode(rows), {row["id"]: row["lessons"] or "" for row in rows}

    def measured(episode: Episode) -> Episode:
        figures = known.get(episode.id, [])
        if len(figures) != len(episode.turns):
            return episode
        turns = (
            replace(turn, seconds=each.seconds, drawing=each.drawing)
            for turn, each in zip(episode.turns, figures, strict=True)
        )
        return replace(episode, turns=tuple(turns), lesson_use=uses[episode.id])

    return list(map(measured, episodes))


def copy_turn_figures(source: RunPaths, target: RunPaths, last: int) -> None:
    """Copy what a run keeps of its revisions up to ``last`` to a branch; what cannot be copied is left out."""
    for file in sorted((source.root / FOLDER).glob("r*.parquet")):
        if 0 <= _number(file) <= last:
            with suppress(OSError):
                (target.root / FOLDER).mkdir(exist_ok=True)
                copyfile(file, target.root / FOLDER / file.name)


def _rows(paths: RunPaths, revision: int, columns: Sequence[str] = tuple(FIGURES.names)) -> list[dict[str, Any]]:
    """Rows of a file; empty if it is not there, or not as coevo writes it."""
    wanted = pa.schema([FIGURES.field(name) for name in columns])
    try:
        # Read as one file, since a data set of one costs more than the file itself, beside a training.
        table = parquet.ParquetFile(_file(paths, revision)).read(list(columns), use_threads=False)
        rows: list[dict[str, Any]] = table.to_pylist() if table.schema.equals(wanted) else []
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException):
        return []
    return rows


def _by_episode(rows: Iterable[Mapping[str, Any]]) -> FiguresByEpisode:
    try:
        return {row["id"]: _figures(row) for row in rows}
    except (ValueError, TypeError, KeyError):
        return {}


def _figures(row: Mapping[str, Any]) -> list[TurnFigures]:
    columns = (row[name] for name in ("seconds", "scores", "drawing"))
    return [
        TurnFigures(_finite(spent), tuple(map(_finite, scores or ())), _finite(drawn))
        for spent, scores, drawn in zip(*columns, strict=True)
    ]


def _file(paths: RunPaths, revision: int) -> Path:
    return paths.root / FOLDER / f"r{revision}.parquet"


def _number(file: Path) -> int:
    text = file.stem[1:]
    return int(text) if text.isascii() and text.isdecimal() else -1


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
