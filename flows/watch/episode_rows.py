"""Episodes of a revision as rows of the index, without their prompts and answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from coevo.flows.history.stored_episodes import PARQUET, TRAINING
from coevo.flows.report.lives import shown_in
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.failure_reasons import LessonUse, failure_reason
from coevo.records.task import Task

HELD_OUT = "held_out"
ARTIFACTS = ("episodes", HELD_OUT)
"""Artifacts with episodes: of training, and of panels."""
COLUMNS = ("id", "kind", "scope", "task_id", "instruction", "replica", "revision", "success", "reward", "truncated")
OF_TURNS = ("retrieved", "valid")
EXTRA = ("faults", "cut", "lost", "panel", "reason", "lessons")
"""Columns that not every table has."""
NOTHING = Completion((), (), "", True)
NO_TASK = Task("", "", "", "", "", {})


@dataclass(frozen=True, slots=True)
class EpisodeBatch:
    """Episodes of one artifact.

    Attributes:
        rows: id, panel, kind, scope, task, instruction, replica, revision, success, reward, reason, lessons, turns,
            lost; of each.
        uses: an episode by its position, and the id of an entry that stood in one of its prompts.
    """

    rows: Sequence[tuple[Any, ...]]
    uses: Sequence[tuple[int, str]]


def episode_batch(files: Mapping[str, Path], artifact: str, uses: Mapping[str, str]) -> EpisodeBatch:
    """Read the episodes of an artifact.

    Args:
        files: of the artifact.
        artifact: one of ``ARTIFACTS``.
        uses: part of the lessons in failures of training, by episode.

    Raises:
        KeyError, OSError, pyarrow.ArrowException: the table is not as coevo writes it.
    """
    stored = parquet.ParquetFile(files[PARQUET])
    extra = [name for name in EXTRA if name in stored.schema_arrow.names]
    wanted = [*COLUMNS, *(f"turns.list.element.{name}" for name in OF_TURNS), *extra]
    table = stored.read(wanted, use_threads=False)  # a small table, read beside a training
    if not table.num_rows:
        return EpisodeBatch((), ())
    turns = table["turns"].combine_chunks()
    episodes, names, ids = shown_in(turns)
    read = [(int(episode), ids[name]) for episode, name in zip(episodes, names, strict=True)]
    valid = pa.ListArray.from_arrays(turns.offsets, turns.flatten().field("valid")).to_pylist()
    rows = table.drop_columns(["turns"]).to_pylist()
    return EpisodeBatch([_row(row, each, artifact, uses) for row, each in zip(rows, valid, strict=True)], read)


def _row(row: dict[str, Any], valid: Sequence[bool], artifact: str, uses: Mapping[str, str]) -> tuple[Any, ...]:
    held = artifact == HELD_OUT
    reason = row["reason"] if held else _reason(row, valid)
    use = str(uses.get(row["id"], LessonUse.UNKNOWN)) if reason else ""
    return (
        row["id"],
        row["panel"] if held else TRAINING,
        *(row[name] for name in ("kind", "scope", "task_id", "instruction", "replica", "revision")),
        row["success"],
        row["reward"],
        reason,
        row["lessons"] if held else use,
        len(valid),
        bool(row.get("lost")),
    )


def _reason(row: dict[str, Any], valid: Sequence[bool]) -> str:
    """Reason of a failure, by what of an episode decides it."""
    lost = row.get("lost") or ""
    if row["success"] and not lost:
        return ""
    faults = row.get("faults") or [""] * len(valid)
    turns = tuple(
        Turn("", (), NOTHING, "", "", 0.0, good, fault=fault) for good, fault in zip(valid, faults, strict=True)
    )
    episode = Episode(
        row["id"], NO_TASK, 0, 0, turns, row["success"], row["truncated"], cut=row.get("cut") or "", lost=lost
    )
    return failure_reason(episode) or ""
