"""Optimizer state that only some revisions keep, since it is several times as large as the weights.

From ``LARGE_OPTIMIZER`` bytes on, a run keeps the optimizer for its last revision and for every k-th, k being
``lineage.optimizer_every``. The manifest of each other revision names it in ``until_next``: it may be gone as soon as a
newer revision exists.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coevo.lineage.revision.manifest import Manifest

OPTIMIZER = "optimizer"


def is_sparse(sizes: Mapping[str, int]) -> bool:
    """True if not every revision keeps the optimizer; ``sizes`` has the bytes of each artifact."""
    from coevo.configs.sections import LARGE_OPTIMIZER

    return OPTIMIZER in sizes and sizes[OPTIMIZER] >= LARGE_OPTIMIZER


def until_next(revision: int, sizes: Mapping[str, int], config: Mapping[str, Any]) -> list[str]:
    """Artifacts that a revision keeps only until the next one.

    Args:
        revision: its number.
        sizes: bytes of each of its artifacts.
        config: of the run, as in the manifest.
    """
    from coevo.configs.sections import LineageConfig

    every = LineageConfig.model_validate(config.get("lineage", {})).optimizer_every
    return [OPTIMIZER] if is_sparse(sizes) and revision % every else []


def removed(history: Sequence[Manifest], retained: Sequence[int], artifact: str, revision: int) -> str:
    """Message for a revision that has lost an artifact to a newer one; it names the nearest revision with one.

    Args:
        history: all revisions.
        retained: numbers of those that are kept whole.
        artifact: its name.
        revision: number of the revision without it.
    """
    found = [other for other in retained if artifact in history[other].kept(len(history) - 1)]
    near = min(found, key=lambda other: abs(other - revision), default=None)
    choice = "" if near is None else f"choose revision {near}, the nearest that has one, or "
    return (
        f"revision {revision}: its {artifact} was removed when a newer revision had one (lineage.optimizer_every): "
        f"{choice}begin a new one with --without-{artifact}"
    )
