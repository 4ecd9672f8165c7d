"""Revisions of a run as a page's server saw them last, so that a new one costs one command of git."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest

DROPPED = (".git/packed-refs", ".git/refs/dropped")
"""Files of a lineage that change with the revisions that are no longer kept whole."""


@dataclass(frozen=True, slots=True)
class SeenHistory:
    """Revisions of a run.

    Attributes:
        commits: git commit of each.
        dropped: those that are no longer kept whole.
        seen: marks of the files that say which.
        last: manifest of the last one, where it was read along.
    """

    commits: Sequence[str]
    dropped: set[int]
    seen: tuple[int, ...]
    last: Manifest | None = None


def seen_history(lineage: Lineage, root: Path, before: SeenHistory | None) -> SeenHistory:
    """Read the revisions of the lineage at ``root``: all, or only the one that follows those of before.

    Raises:
        CoevoError: git failed.
    """
    seen = marks(*(root / name for name in DROPPED))
    if before is not None and before.seen == seen and before.commits:
        found = lineage.history.following(before.commits[-1])
        if found is not None and found[1].revision == len(before.commits):
            return SeenHistory([*before.commits, found[0]], before.dropped, seen, found[1])
    return SeenHistory(lineage.history.commits(), lineage.tags.dropped(), seen)


def marks(*paths: Path | str) -> tuple[int, ...]:
    """Marks of files, which change with them: time, inode and size of each; zeros where one is not there."""
    return tuple(mark for path in paths for mark in _marks(path))


def _marks(path: Path | str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - a path takes three times as long to make as to look at, beside a training
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_ino, found.st_size
