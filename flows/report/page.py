"""The report as HTML. Text of an environment or a policy is escaped and stripped of control characters.

A content security policy names the page's own style and script by their hashes, so that the browser runs no other
script and loads nothing from elsewhere.
"""

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coevo.flows.console.output import plain
from coevo.flows.report.charts import by_panel, durations, internalization, spread
from coevo.flows.report.facts import ReportData
from coevo.flows.report.graph import graph
from coevo.flows.report.outcomes import by_kind, by_reason, changed_settings, origin, start_and_end

if TYPE_CHECKING:
    from jinja2 import Environment

    from coevo.memory.bank.change import Ruling
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from coevo.flows.history import history
from coevo.flows.history.verdicts import (
    CREDIT_COLUMNS,
    RULING_COLUMNS,
    ruling_cells,
    ruling_row,
    verdict_columns,
    verdict_row,
    with_credit,
)
from coevo.flows.report.charts import WIDTH, Plot, Scale, across, panels, upwards
from coevo.flows.report.lives import Life
from coevo.lineage.revision.code_version import flat
from coevo.memory.bank.change import Judged
from coevo.tasks.cost import time_line, wall_seconds

HERE = Path(__file__).parent
MAX_TABLE_ROWS = 500
"""Most rows of a table; a line below it counts the omitted ones."""
VERDICT_COLUMNS = (
    "revision", "candidates", "admitted", "difference", "low", "high", "threshold", "pairs", "significant",
    "first candidate",
)  # fmt: skip
ENTRY_COLUMNS = (
    "id", "entry", "scope", "created", "edited", "retired", "retrievals", "successes", "gain", "gain low", "gain high",
)  # fmt: skip
EXPENSE_COLUMNS = ("part", "episodes", "questions", "tokens", "money", "seconds", "in equal")
__all__ = ["EXPENSE_COLUMNS", "MAX_TABLE_ROWS", "RULING_COLUMNS", "VERDICT_COLUMNS"]
ReportRow = dict[str, Any]
MOST_LIVES, ROW, ABOVE = 120, 14, 10
LABEL = 260
"""Space beside the lines for the entries' text."""
BINS = 120
"""Most columns for the uses of an entry."""
MAX_VERDICTS = 2000


@dataclass(frozen=True, slots=True)
class LifeLine:
    """The line of one entry.

    Attributes:
        life: the entry and its uses.
        y: vertical position.
        span: from creation to retirement, or to the last revision.
        uses: paths of the columns whose success rate is below 1/3, from 1/3 to 2/3, and above.
        edits: positions of its edits.
        retired: position of its retirement; None while it is active.
    """

    life: Life
    y: float
    span: tuple[float, float]
    uses: tuple[str, str, str]
    edits: tuple[float, ...]
    retired: float | None


@dataclass(frozen=True, slots=True)
class VerdictInterval:
    """A verdict of replay: vertical positions of the difference, the bounds of its interval, and the threshold."""

    judged: Judged
    x: float
    y: float
    low: float
    high: float
    delta: float


def page(facts: ReportData) -> str:
    """Render the whole document."""
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return (
        _environment()
        .get_template("page.html")
        .render(
            style=style,
            script=script,
            policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'",
            facts=facts,
            **_figures(facts),
            **_tables(facts),
        )
    )


def _figures(facts: ReportData) -> dict[str, Any]:
    last = facts.manifests[-1].revision
    return {
        "success": by_panel(facts.manifests, "success"),
        "reward": by_panel(facts.manifests, "reward"),
        "internalization": internalization(facts.manifests),
        "spread": spread(facts.manifests),
        "durations": durations(facts.manifests),
        "graph": graph(facts.manifests, set(facts.kept), dict(facts.tags), facts.offshoots),
        "lifelines": life_lines(facts.lives.values(), _edits(facts.rulings), last),
        "intervals": intervals(facts.judged, last) if facts.judged else None,
    }


def _edits(rulings: Iterable["Ruling"]) -> dict[str, list[int]]:
    """Revisions in which an operation changed an entry, by id."""
    edits: dict[str, list[int]] = {}
    for ruling in rulings:
        for entry in ruling.entries if ruling.outcome == "applied" else ():
            edits.setdefault(entry, []).append(ruling.revision)
    return edits


def _tables(facts: ReportData) -> dict[str, Any]:
    return {
        "most": MAX_TABLE_ROWS,
        "headline": headline(facts),
        "origin": origin(facts.manifests, facts.commits[-1], facts.overrides),
        "ends": start_and_end(facts.manifests, panels(facts.manifests), facts.about),
        "kinds": by_kind(facts.held_out),
        "reasons": by_reason(facts.held_out),
        "changed": changed_settings(facts.manifests[-1]),
        "revisions": revision_rows(facts),
        "entries": entry_rows(facts),
        "retrievals": (("retrievals", "entries"), retrieval_rows(facts)),
        "verdicts": verdict_rows(facts),
        "rulings": (RULING_COLUMNS, ruling_rows(facts)),
        "expenses": (EXPENSE_COLUMNS, expense_rows(facts)),
        "settings": (("setting", "value"), setting_rows(facts)),
    }


def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters["inert"] = _inert
    made.filters["cell"] = _cell
    made.tests["figure"] = lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    return made


def _inert(value: object) -> str:
    """Text without invisible characters, such as those that change its direction."""
    return plain(str(value)).plain


def _cell(value: object) -> str:
    """Format a value for readers."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else _inert(value)


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


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
    return verdict_columns(VERDICT_COLUMNS, found), found


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


def life_lines(lives: Iterable[Life], edits: dict[str, list[int]], last: int) -> tuple[Scale, list[LifeLine]]:
    """Lines of the entries retrieved most, in order of creation; ``edits`` are revisions by entry."""
    shown = sorted(lives, key=lambda life: (-life.shown, life.entry.created, life.entry.id))[:MOST_LIVES]
    x = Scale(0, max(1, last), 16, WIDTH - LABEL)
    ordered = sorted(shown, key=lambda life: (life.entry.created, life.entry.id))
    return x, [_life_line(life, ABOVE + ROW * row, edits.get(life.entry.id, []), x) for row, life in enumerate(ordered)]


def intervals(judged: Sequence[Judged], last: int) -> tuple[Plot, list[VerdictInterval]]:
    """The latest verdicts; those of one revision are side by side."""
    shown = judged[-MAX_VERDICTS:]
    values = [value for each in shown for value in (*each.verdict.interval, each.verdict.delta)]
    x, y = across(last), upwards(values, 300, include=[0.0])
    step = (x.end - x.start) / (x.high + 1) * 0.8
    found = []
    for _, group in groupby(shown, key=lambda each: each.verdict.revision):
        beside = list(group)
        for number, each in enumerate(beside):
            aside = step * ((number + 0.5) / len(beside) - 0.5)
            found.append(_interval(each, round(x.at(each.verdict.revision) + aside, 1), y))
    return Plot(300, x, y), found


def _interval(judged: Judged, x: float, y: Scale) -> VerdictInterval:
    verdict = judged.verdict
    low, high = verdict.interval
    return VerdictInterval(judged, x, y.at(verdict.difference), y.at(low), y.at(high), y.at(verdict.delta))


def _life_line(life: Life, y: float, edits: Sequence[int], x: Scale) -> LifeLine:
    entry, last = life.entry, int(x.high)
    end = last if entry.active else entry.retired
    changed = sorted({*edits, *([entry.edited] if entry.edited > entry.created else [])})
    span = x.at(entry.created), x.at(end)
    retired = None if entry.active else x.at(entry.retired)
    return LifeLine(life, y, span, _columns(life, y, x), tuple(x.at(revision) for revision in changed), retired)


def _columns(life: Life, y: float, x: Scale) -> tuple[str, str, str]:
    size = max(1, -(-(int(x.high) + 1) // BINS))
    binned: dict[int, tuple[int, int]] = {}
    for revision, (shown, solved) in life.uses.items():
        before = binned.get(revision // size, (0, 0))
        binned[revision // size] = before[0] + shown, before[1] + solved
    wide = round((x.end - x.start) / (x.high + 1) * size, 1)
    paths: tuple[list[str], list[str], list[str]] = ([], [], [])
    for column, (shown, solved) in sorted(binned.items()):
        at = x.at(column * size) - (wide / 2 if size == 1 else 0)
        paths[min(2, 3 * solved // shown)].append(f"M{at:g} {y - 3:g}h{wide:g}v6h-{wide:g}z")
    return "".join(paths[0]), "".join(paths[1]), "".join(paths[2])
