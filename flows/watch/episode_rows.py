"""Episodes of a revision as rows of the index, without their prompts and answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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
    known = stored.schema_arrow.names
    wanted = [
        *COLUMNS,
        *(f"turns.list.element.{name}" for name in OF_TURNS),
        *(name for name in EXTRA if name in known),
    ]
    table = stored.read(wanted, use_threads=False)  # a small table, read beside a training
    if not table.num_rows:
        return EpisodeBatch((), ())
    turns = table["turns"].combine_chunks()
    episodes, names, ids = shown_in(turns)
    read = list(zip(episodes.tolist(), [ids[name] for name in names.tolist()], strict=True))
    valid = pa.ListArray.from_arrays(turns.offsets, turns.flatten().field("valid")).to_pylist()
    columns = {name: table[name].to_pylist() for name in table.column_names if name != "turns"}
    return EpisodeBatch(_rows(columns, valid, artifact == HELD_OUT, uses), read)


def _rows(
    columns: Mapping[str, list[Any]], valid: Sequence[Sequence[bool]], held: bool, uses: Mapping[str, str]
) -> list[tuple[Any, ...]]:
    """Rows of the index, a column at a time."""
    count = len(valid)
    lost = columns.get("lost") or [""] * count
    if held:
        panels, reasons, parts = columns["panel"], columns["reason"], columns["lessons"]
    else:
        panels, reasons = [TRAINING] * count, _reasons(columns, valid, lost)
        parts = [
            str(uses.get(name, LessonUse.UNKNOWN)) if reason else ""
            for name, reason in zip(columns["id"], reasons, strict=True)
        ]
    of_task = (columns[name] for name in ("kind", "scope", "task_id", "instruction", "replica", "revision"))
    outcome = (columns["success"], columns["reward"], reasons, parts, map(len, valid), map(bool, lost))
    return list(zip(columns["id"], panels, *of_task, *outcome, strict=True))


def _reasons(columns: Mapping[str, list[Any]], valid: Sequence[Sequence[bool]], lost: Sequence[str]) -> list[str]:
    """Reason of each failure, by what of an episode decides it."""
    empty = [None] * len(valid)
    faults, cut = columns.get("faults") or empty, columns.get("cut") or empty
    rows = zip(columns["success"], lost, valid, faults, columns["truncated"], cut, strict=True)
    return [
        "" if success and not away else _reason(success, away or "", tuple(good), tuple(fault or ()), truncated, short)
        for success, away, good, fault, truncated, short in rows
    ]


@lru_cache(maxsize=256)
def _reason(
    success: bool, lost: str, valid: tuple[bool, ...], faults: tuple[str, ...], truncated: bool, cut: str | None
) -> str:
    """Reason of a failure. Many fail alike: without an invalid turn, when no turn is left."""
    told = zip(valid, faults or [""] * len(valid), strict=True)
    turns = tuple(Turn("", (), NOTHING, "", "", 0.0, good, fault=fault) for good, fault in told)
    return failure_reason(Episode("", NO_TASK, 0, 0, turns, success, truncated, cut=cut or "", lost=lost)) or ""
