"""Verdicts of replay, and what became of edit operations, as rows."""

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from lineage.manifest import Manifest

if TYPE_CHECKING:
    from memory.change import Judged, Ruling

RULING_COLUMNS = ("revision", "scope", "outcome", "operation", "entries", "reason")


def verdict_row(judged: "Judged", history: Sequence[Manifest]) -> dict[str, Any]:
    """What replay said of a batch; ``low`` and ``high`` bound the 95 % interval of the mean paired difference.

    ``confidence`` is what the revision's configuration set, ``bound`` the lower bound that had to exceed ``delta``:
    None where the pairs were too few for one. Both are None where no confidence was set.

    Args:
        judged: the batch.
        history: revisions of the run, from 0 to that of the verdict at least.
    """
    verdict = judged.verdict
    low, high = verdict.interval
    count = len(judged.candidates)
    return {
        "revision": verdict.revision,
        "candidates": count,
        "admitted": count if verdict.admitted else 0,
        "rejected": 0 if verdict.admitted else count,
        "difference": verdict.difference,
        "low": low,
        "high": high,
        "inside_noise": verdict.inside_noise,
        "reward_with": verdict.reward_with,
        "reward_without": verdict.reward_without,
        "pairs": verdict.pairs,
        "delta": verdict.delta,
        **_bounded(judged, history[verdict.revision].state["config"]),
    }


def _bounded(judged: "Judged", config: dict[str, Any]) -> dict[str, float | None]:
    confidence = ((config["bank"] or {}).get("admission") or {}).get("confidence")
    if confidence is None:
        return {"confidence": None, "bound": None}
    from memory.admission.confidence import lower_bound

    bound = lower_bound(judged.verdict, confidence)
    return {"confidence": confidence, "bound": bound if isfinite(bound) else None}


def with_bound(columns: tuple[str, ...], rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The columns of a table of verdicts, with the bound where one was asked for."""
    return columns if all(row["confidence"] is None for row in rows) else (*columns, "confidence", "bound")


def ruling_row(ruling: "Ruling") -> dict[str, Any]:
    """What became of an edit operation; ``operation`` is None where scores or capacity took an entry out."""
    row = asdict(ruling)
    return {"operation": row.pop("line") or None, **row, "entries": list(ruling.entries)}


def ruling_cells(row: dict[str, Any]) -> dict[str, Any]:
    """The row as a table shows it."""
    return row | {"entries": " ".join(row["entries"])}
