"""Verdicts of replay and outcomes of edit operations, as rows, and who wrote what they are about."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from coevo.lineage.revision.manifest import Manifest
from coevo.records.entry import Verdict

if TYPE_CHECKING:
    from coevo.memory.bank.change import Judged, Ruling

CREDIT_COLUMNS = ("credit", "credit_low", "credit_high", "credit_pairs")
RULING_COLUMNS = ("revision", "scope", "outcome", "operation", "entries", "reason")


def verdict_row(judged: "Judged", history: Sequence[Manifest] | Mapping[int, Manifest]) -> dict[str, Any]:
    """Row for a judged batch; ``low`` and ``high`` bound the 95 % interval of the mean paired difference.

    ``confidence`` is the setting of the revision's configuration, ``bound`` the lower bound over all measurements of
    the lesson, which had to exceed ``delta`` (None if too many pairs were lost). Both are None without a confidence.
    ``reason`` says why the batch was rejected; None if it was admitted.
    ``seen_share`` is the share of the episodes with the candidate that saw it; None unless it was on trial.

    Args:
        judged: the batch.
        history: revisions of the run, from 0 at least to that of the verdict.
    """
    verdict = judged.verdict
    low, high = verdict.interval
    count, manifest = len(judged.candidates), history[verdict.revision]
    bounded = _bounded(judged, manifest.state["config"])
    return {
        "revision": verdict.revision,
        "candidates": count,
        "admitted": count if verdict.admitted else 0,
        "rejected": 0 if verdict.admitted else count,
        "difference": verdict.difference,
        "low": low,
        "high": high,
        "significant": verdict.significant,
        "reward_with": verdict.reward_with,
        "reward_without": verdict.reward_without,
        "pairs": verdict.pairs,
        "delta": verdict.delta,
        "seen_share": verdict.seen_share,
        **bounded,
        "reason": None
        if verdict.admitted
        else _reason(replace(verdict, bound=bounded["bound"]), "approval" in manifest.state),
    }


def _reason(verdict: Verdict, was_asked: bool) -> str:
    """Reason of a rejection: the condition that was not met, or what else stood against it."""
    if verdict.seen_share == 0:
        return "no prompt held it"
    reached = verdict.difference if verdict.bound is None else verdict.bound
    return "a person rejected it" if was_asked and reached > verdict.delta else verdict.requirement


def _bounded(judged: "Judged", config: dict[str, Any]) -> dict[str, float | None]:
    admission = (config["bank"] or {}).get("admission") or {}
    confidence = admission.get("confidence")
    return {"confidence": confidence, "bound": None if confidence is None else judged.verdict.bound}


def verdict_columns(columns: tuple[str, ...], rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Columns of a table of verdicts, with confidence and bound, and with the share of trials, if any row has them."""
    bounded = ("confidence", "bound") if any(row["confidence"] is not None for row in rows) else ()
    return (*columns, *bounded, *(("seen_share",) if any(row["seen_share"] is not None for row in rows) else ()))


def credit_row(left_out: "Judged") -> dict[str, Any]:
    """Row for a measurement of an entry: mean reward of replays with it minus without it, its 95 % interval, and pairs.

    Without a sound pair, they are None.
    """
    verdict = left_out.verdict
    credit, low, high = (verdict.difference, *verdict.interval) if verdict.pairs else (None, None, None)
    return dict(zip(CREDIT_COLUMNS, (credit, low, high, verdict.pairs), strict=True)) | {
        "revision": verdict.revision, "stays": verdict.admitted,
    }  # fmt: skip


def latest_credits(left_out: Sequence["Judged"]) -> dict[str, dict[str, Any]]:
    """Latest measurement of each entry, by id; ``left_out`` is in the order of revisions."""
    return {entry: credit_row(each) for each in left_out for entry in each.verdict.candidates}


def with_credit(columns: tuple[str, ...], rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Columns of a table of entries, with their credit if any entry was measured."""
    return (*columns, *CREDIT_COLUMNS) if any(row["credit_pairs"] is not None for row in rows) else columns


def ruling_row(ruling: "Ruling") -> dict[str, Any]:
    """Row for an edit operation; ``operation`` is None if scores or capacity removed an entry."""
    row = asdict(ruling)
    return {"operation": row.pop("line") or None, **row, "entries": list(ruling.entries)}


def ruling_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Row as shown in a table."""
    return row | {"entries": " ".join(row["entries"])}


def writer_of(made: Manifest) -> str | None:
    """Type of the writer of a revision's entries, and of its model; None where they were imported."""
    if "bank/imported" in made.metrics:
        return None
    writer = (made.state["config"]["bank"] or {}).get("writer") or {}
    model = writer.get("model")
    return str(writer.get("type", "unknown")) + ("" if model is None else f" ({model['type']} model)")
