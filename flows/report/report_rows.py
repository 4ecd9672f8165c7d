"""The report's tables: rows of plain values under column names."""

from collections.abc import Iterator
from typing import Any

from coevo.flows.history import history
from coevo.flows.history.verdicts import (
    CREDIT_COLUMNS,
    RULING_COLUMNS,
    ruling_cells,
    ruling_row,
    verdict_row,
    with_bound,
    with_credit,
)
from coevo.flows.report.curves import panels
from coevo.flows.report.facts import ReportData
from coevo.flows.report.lives import Life
from coevo.lineage.revision.code_version import flat
from coevo.tasks.cost import time_line, wall_seconds

MOST = 500
"""Most rows of a table; a line below it counts the omitted ones."""
VERDICT_COLUMNS = (
    "revision", "candidates", "admitted", "difference", "low", "high", "threshold", "pairs", "significant",
    "first candidate",
)  # fmt: skip
ENTRY_COLUMNS = (
    "id", "entry", "scope", "created", "edited", "retired", "retrievals", "successes", "gain", "gain low", "gain high",
)  # fmt: skip
EXPENSE_COLUMNS = ("part", "episodes", "questions", "tokens", "money", "seconds", "in equal")
__all__ = ["EXPENSE_COLUMNS", "MOST", "RULING_COLUMNS", "VERDICT_COLUMNS"]
ReportRow = dict[str, Any]


def headline(facts: ReportData) -> list[tuple[str, str]]:
    """Headline metrics, as names and formatted values."""
    evaluated = history.evaluated(facts.manifests)
    panel = history.headline_panel(facts.manifests[0])
    start, end = history.held_out(facts.manifests[0]), None if evaluated is None else history.held_out(evaluated)
    found = [
        ("status", str(facts.status)),
        ("iterations", str(facts.manifests[-1].iteration)),
        ("revisions", str(len(facts.manifests))),
        ("rollbacks", str(sum(history.is_rollback(m) for m in facts.manifests))),
    ]
    if evaluated is not None:
        when = "" if evaluated is facts.manifests[-1] else f" at revision {evaluated.revision}"
        begun = "" if start is None else f"{start:.3f} to "
        found.insert(0, (f"success on {panel}", f"{begun}{end:.3f}{when}"))
    if facts.lives:
        active = sum(life.entry.active for life in facts.lives.values())
        found.append(("entries, of all that ever were", f"{active} of {len(facts.lives)}"))
    return [*found, *_expense(facts)]


def _expense(facts: ReportData) -> Iterator[tuple[str, str]]:
    """Episodes, tokens and seconds of learning, without those that were not counted."""
    spent = facts.spent[-1]
    for name, count in (("episodes", spent.episodes), ("tokens", spent.tokens)):
        if count is not None:
            yield f"{name} for learning", f"{count:,}"
    yield "seconds of learning", f"{spent.seconds:,.0f}"
    yield "time", time_line(facts.manifests)


def revision_rows(facts: ReportData) -> tuple[tuple[str, ...], list[ReportRow]]:
    """One row per revision: its origin, success and reward by panel from the manifest."""
    names = [f"agent/{what}/{panel}" for panel in panels(facts.manifests) for what in ("success", "reward")]
    names = [name for name in names if any(name in manifest.metrics for manifest in facts.manifests)]
    led = {manifest.revision for manifest in history.trail(facts.manifests)}
    rows = []
    for manifest, size, spent, commit in zip(facts.manifests, facts.sizes, facts.spent, facts.commits, strict=True):
        number = manifest.revision
        standing = ["" if number in led else "left behind", "" if number in facts.kept else "dropped by gc"]
        tags = [name for name, revision in facts.tags.items() if revision == number]
        rows.append(
            {
                "revision": number,
                "iteration": manifest.iteration,
                "committed": history.time_of(manifest),
                "what": history.happened(manifest),
                "standing": ", ".join(word for word in (*standing, *tags) if word),
                **{name: manifest.metrics.get(name) for name in names},
                "bank": size,
                "seconds": wall_seconds(manifest) or None,
                "tokens so far": spent.tokens,
                "commit": commit[:12],
            }
        )
    return tuple(rows[0]), rows


def entry_rows(facts: ReportData) -> tuple[tuple[str, ...], list[ReportRow]]:
    """Columns, and one row per entry, those retrieved most first."""
    ranked = sorted(facts.lives.values(), key=lambda life: (-life.shown, life.entry.id))
    rows = [
        _entry_row(life) | {name: facts.credits.get(life.entry.id, {}).get(name) for name in CREDIT_COLUMNS}
        for life in ranked
    ]
    return with_credit(ENTRY_COLUMNS, rows), rows


def retrieval_rows(facts: ReportData) -> list[ReportRow]:
    """One row per bin of the histogram of retrievals, up to that of the entry retrieved most."""
    from coevo.memory.stats import FROM

    if facts.retrievals is None:
        return []
    counts, ends = facts.retrievals, (*(least - 1 for least in FROM[1:]), None)
    bins = [(least, end, n) for least, end, n in zip(FROM, ends, counts.histogram, strict=True) if least <= counts.most]
    return [{"retrievals": _bin(least, end), "entries": n} for least, end, n in bins]


def verdict_rows(facts: ReportData) -> tuple[tuple[str, ...], list[ReportRow]]:
    """Columns, and one row per verdict of replay, the latest first."""
    found = [
        verdict_row(judged, facts.manifests)
        | {"threshold": judged.verdict.delta, "first candidate": judged.candidates[0].strategy}
        for judged in reversed(facts.judged)
        if judged.candidates
    ]
    return with_bound(VERDICT_COLUMNS, found), found


def ruling_rows(facts: ReportData) -> list[ReportRow]:
    """One row per edit operation, the latest first."""
    return [ruling_cells(ruling_row(ruling)) for ruling in reversed(facts.rulings)]


def expense_rows(facts: ReportData) -> list[ReportRow]:
    """One row per part of the run's expense."""
    return [
        {name: getattr(each, name) for name in EXPENSE_COLUMNS[:-1]} | {"in equal": ", ".join(each.budgets)}
        for each in facts.parts
    ]


def setting_rows(facts: ReportData) -> list[ReportRow]:
    """Configuration of the last revision."""
    settings = flat(facts.manifests[-1].state["config"])
    return [{"setting": key, "value": str(value)} for key, value in sorted(settings.items())]


def _bin(first: int, last: int | None) -> str:
    return f"{first} or more" if last is None else str(first) if first == last else f"{first} to {last}"


def _entry_row(life: Life) -> ReportRow:
    entry, (low, high) = life.entry, life.interval
    return {
        "id": entry.id,
        "entry": entry.strategy,
        "scope": entry.scope,
        "created": entry.created,
        "edited": entry.edited if entry.edited > entry.created else None,
        "retired": None if entry.active else entry.retired,
        "retrievals": life.shown,
        "successes": life.solved,
        "gain": life.gain,
        "gain low": low,
        "gain high": high,
    }
