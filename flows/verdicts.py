"""Verdicts of replay, and what became of edit operations, as rows."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory.change import Judged, Ruling

RULING_COLUMNS = ("revision", "scope", "outcome", "operation", "entries", "reason")


def verdict_row(judged: "Judged") -> dict[str, Any]:
    """What replay said of a batch; ``low`` and ``high`` bound the 95 % interval of the mean paired difference."""
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
    }


def ruling_row(ruling: "Ruling") -> dict[str, Any]:
    """What became of an edit operation; ``operation`` is None where scores or capacity took an entry out."""
    row = asdict(ruling)
    return {"operation": row.pop("line") or None, **row, "entries": list(ruling.entries)}


def ruling_cells(row: dict[str, Any]) -> dict[str, Any]:
    """The row as a table shows it."""
    return row | {"entries": " ".join(row["entries"])}
