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
from coevo.flows.report import report_rows
from coevo.flows.report.bank_figures import intervals, life_lines
from coevo.flows.report.curves import by_panel, durations, internalization, spread
from coevo.flows.report.facts import ReportData
from coevo.flows.report.graph import graph

if TYPE_CHECKING:
    from jinja2 import Environment

    from coevo.memory.bank.change import Ruling

HERE = Path(__file__).parent


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
        "most": report_rows.MOST,
        "headline": report_rows.headline(facts),
        "revisions": report_rows.revision_rows(facts),
        "entries": report_rows.entry_rows(facts),
        "retrievals": (("retrievals", "entries"), report_rows.retrieval_rows(facts)),
        "verdicts": report_rows.verdict_rows(facts),
        "rulings": (report_rows.RULING_COLUMNS, report_rows.ruling_rows(facts)),
        "expenses": (report_rows.EXPENSE_COLUMNS, report_rows.expense_rows(facts)),
        "settings": (("setting", "value"), report_rows.setting_rows(facts)),
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
