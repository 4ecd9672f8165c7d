"""Episodes that evaluations of a revision played, kept beside the run for pages that compare them."""

import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from coevo.flows.history.revision_reference import Reading
from coevo.flows.history.stored_episodes import PARQUET
from coevo.lineage.atomic_files import make_private
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.records.failure_reasons import failure_reason
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.records.episode import Episode

PLAYED = "played-"
"""Beginning of the kind of an episode that an evaluation played, in an address."""
OWN_SIDE = "bank own"
"""The run's own bank, in words."""
MAX_PLAYED = 32
"""Most evaluations of a run whose episodes are kept."""


def keep_played(opened: Reading, panel: str, side: str, episodes: Sequence["Episode"]) -> None:
    """Keep episodes that an evaluation played beside the run, for pages that show a task with and without the bank.

    They replace those of an earlier evaluation of the same panel and bank, unless that one played all their tasks and
    more. The folder may be deleted at any time; the latest evaluations stay, and those of runs that are gone go.

    Args:
        opened: the revision that played.
        panel: name of the panel.
        side: bank that it was played with, in words.
        episodes: of the panel.
    """
    from coevo.tasks.pending_revision import HeldOutEpisode
    from coevo.tasks.revision_artifacts import write_held_out

    told = f"{panel}, {side}"
    name = _played_name(f"r{opened.manifest.revision}", told)
    kept = [HeldOutEpisode(told, each, failure_reason(each) or "", "") for each in episodes]
    with suppress(OSError, CoevoError):  # the figures of the evaluation do not depend on it
        folder = _played_folder(opened.paths)
        make_private(folder.parent.parent)
        folder.mkdir(parents=True, exist_ok=True)
        if {each.task.id for each in episodes} < _tasks_in(folder / name / PARQUET):
            return
        with TemporaryDirectory(dir=folder) as fresh:
            write_held_out(kept, Path(fresh) / name)
            rmtree(folder / name, ignore_errors=True)
            (Path(fresh) / name).rename(folder / name)
        _drop_old(folder, opened.paths.workspace)


def _tasks_in(file: Path) -> set[str]:
    """Tasks of kept episodes; empty where there are none that can be read."""
    from pyarrow import ArrowException, parquet

    with suppress(ArrowException, KeyError, OSError):
        return set(parquet.read_table(file, columns=["task_id"])["task_id"].to_pylist())
    return set()


def _drop_old(folder: Path, workspace: Workspace) -> None:
    """Delete all but the latest evaluations of a run, and those of runs that are not in the workspace any more."""
    latest = sorted(folder.glob("r*"), key=lambda path: path.stat().st_mtime_ns)
    there = {_played_folder(each) for each in workspace.runs()}
    for old in (*latest[:-MAX_PLAYED], *(each for each in folder.parent.iterdir() if each not in there)):
        rmtree(old, ignore_errors=True)


class Played(NamedTuple):
    """An episode that an evaluation played.

    Attributes:
        episode: the episode.
        side: its panel, and the bank that it was played with.
        reason: why it failed; empty for a success.
        kind, position: the evaluation and the place in it, as an address has them.
    """

    episode: "Episode"
    side: str
    reason: str
    kind: str
    position: int


def played_again(paths: RunPaths, revision: int, task: str) -> list[Played]:
    """Episodes of a task that evaluations of a revision played."""
    import numpy as np
    from pyarrow import ArrowException, parquet

    found = list[Played]()
    with suppress(ArrowException, CoevoError, KeyError, ValueError, TypeError, RecursionError, OSError):
        for file in _kept_files(paths, f"r{revision}-*"):
            tasks = parquet.read_table(file, columns=["task_id"])["task_id"].to_numpy()
            if len(places := np.flatnonzero(tasks == task)):
                found += _played(file, places.tolist())
    return found


def played_at(paths: RunPaths, revision: int, kind: str, position: int) -> Played | None:
    """An episode that an evaluation played, by its address; None where it is gone."""
    from pyarrow import ArrowException

    if not re.fullmatch(rf"{PLAYED}[0-9a-f]{{12}}", kind, re.ASCII):
        return None
    file = _played_folder(paths) / f"r{revision}-{kind.removeprefix(PLAYED)}" / PARQUET
    with suppress(ArrowException, CoevoError, KeyError, ValueError, TypeError, RecursionError, OSError):
        return _played(file, [position])[0]
    return None


def _played(file: Path, places: Sequence[int]) -> list[Played]:
    from pyarrow import parquet

    from coevo.records.arrow import table_to_episodes

    table = parquet.read_table(file).take(list(places))
    told, kind = table.select(["panel", "reason"]).to_pylist(), PLAYED + file.parent.name.partition("-")[2]
    return [
        Played(episode, row["panel"], row["reason"], kind, place)
        for episode, row, place in zip(table_to_episodes(table), told, places, strict=True)
    ]


def entry_tests(paths: RunPaths, entry: str) -> list[dict[str, Any]]:
    """Results of ``coevo bank test`` of an entry that are still kept, newest first.

    Each is a row with revision, panel, tasks that both sides played, ``readers`` among them, successes with the entry
    and without it, and the paired ``difference`` with its interval.
    """
    from pyarrow import ArrowException

    from coevo.records.intervals import paired_success

    found = list[tuple[int, dict[str, Any]]]()
    for file in _kept_files(paths, "r*"):
        with suppress(ArrowException, LookupError, ValueError, TypeError, OSError):
            without, side = _outcomes(file)
            panel = side.removesuffix(f", {without_side((entry,))}")
            if panel == side:
                continue
            other = file.parent.with_name(_played_name(file.parent.name.partition("-")[0], f"{panel}, {OWN_SIDE}"))
            ours, _ = _outcomes(other / PARQUET)
            shared = [task for task in ours if task in without]
            sides = [[each[task][0] for task in shared] for each in (ours, without)]
            row = {
                "revision": int(file.parent.name.partition("-")[0][1:]), "panel": panel, "tasks": len(shared),
                "readers": sum(entry in ours[task][1] for task in shared),
                "success": sum(sides[0]) / len(shared), "without": sum(sides[1]) / len(shared),
                "difference": paired_success(*sides),
            }  # fmt: skip
            found.append((file.stat().st_mtime_ns, row))
    return [row for _, row in sorted(found, key=lambda each: -each[0])]


def _kept_files(paths: RunPaths, pattern: str) -> list[Path]:
    with suppress(CoevoError, OSError, ValueError):
        return sorted(_played_folder(paths).glob(f"{pattern}/{PARQUET}"))
    return []


def _outcomes(file: Path) -> tuple[dict[str, tuple[float, set[str]]], str]:
    """Success and read entries of each task that was not lost, and the side that played."""
    from pyarrow import parquet

    stored = parquet.ParquetFile(file)
    names = ["task_id", "success", "lost", "panel"]
    known = [name for name in names if name in stored.schema_arrow.names]
    rows = stored.read([*known, "turns.list.element.retrieved"]).to_pylist()
    return {
        row["task_id"]: (float(row["success"]), {entry for turn in row["turns"] for entry in turn["retrieved"]})
        for row in rows
        if not row.get("lost")
    }, rows[0]["panel"]


def without_side(entries: Sequence[str]) -> str:
    """Bank of an evaluation that left some entries out, in words."""
    return f"without lesson {', '.join(entries)}"


def _played_name(revision: str, side: str) -> str:
    return f"{revision}-{sha256(side.encode()).hexdigest()[:12]}"


def _played_folder(paths: RunPaths) -> Path:
    """Folder beside the run; one of the same name that was made later has another."""
    return paths.workspace.root / "watch" / "played" / f"{paths.name}-{paths.moment}"
