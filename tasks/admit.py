"""What happens to the bank: the verdict's consequence, and the counters of this iteration's retrievals."""

from collections.abc import Sequence

from memory.change import Judged
from records.entry import Entry, Verdict
from tasks.session import Session
from tasks.stage import stage


@stage("admit")
def admit(session: Session, candidates: Sequence[Entry], verdict: Verdict | None) -> None:
    """Let the batch in or keep it out; either way the verdict and every candidate are kept."""
    draft = session.draft
    if verdict is not None:
        draft.judged.append(Judged(verdict, tuple(candidates)))
    if verdict is not None and verdict.admitted:
        session.admit(candidates)
    session.fire()
    draft.metrics |= verdict_metrics(candidates, verdict) | {"bank/size": float(len(session.entries))}


def verdict_metrics(candidates: Sequence[Entry], verdict: Verdict | None) -> dict[str, float]:
    """Counts of the firing; replay figures only where there was a replay."""
    admitted = len(candidates) if verdict is not None and verdict.admitted else 0
    counts = {"bank/admitted": float(admitted), "bank/rejected": float(len(candidates) - admitted)}
    if verdict is None:
        return counts
    low, high = verdict.interval
    return counts | {
        "replay/difference": verdict.difference,
        "replay/low": low,
        "replay/high": high,
        "replay/with": verdict.reward_with,
        "replay/without": verdict.reward_without,
        "replay/inside_noise": float(verdict.inside_noise),
        "replay/pairs": float(verdict.pairs),
    }
