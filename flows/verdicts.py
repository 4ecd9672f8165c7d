"""Verdicts of replay as rows."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory.change import Judged


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
