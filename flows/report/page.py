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
from coevo.flows.report import rows
from coevo.flows.report.bank import intervals, life_lines
from coevo.flows.report.curves import by_panel, durations, internalization, spread
from coevo.flows.report.facts import Facts
from coevo.flows.report.graph import graph

if TYPE_CHECKING:
    from jinja2 import Environment

    from coevo.memory.bank.change import Ruling

HERE = Path(__file__).parent


def page(told: Facts) -> str:
    """Render the whole document."""
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return (
        _environment()
        .get_template("page.html")
        .render(
            style=style,
            script=script,
            policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'",
            told=told,
            **_figures(told),
            **_tables(told),
        )
    )


def _figures(told: Facts) -> dict[str, Any]:
    last = told.manifests[-1].revision
    return {
        "success": by_panel(told.manifests, "success"),
        "reward": by_panel(told.manifests, "reward"),
        "internalization": internalization(told.manifests),
        "spread": spread(told.manifests),
        "durations": durations(told.manifests),
        "graph": graph(told.manifests, set(told.kept), dict(told.tags), told.offshoots),
        "lifelines": life_lines(told.lives.values(), _edits(told.rulings), last),
        "intervals": intervals(told.judged, last) if told.judged else None,
    }


def _edits(rulings: Iterable["Ruling"]) -> dict[str, list[int]]:
    """Revisions in which an operation changed an entry, by id."""
    edits: dict[str, list[int]] = {}
    for ruling in rulings:
        for entry in ruling.entries if ruling.outcome == "applied" else ():
            edits.setdefault(entry, []).append(ruling.revision)
    return edits


def _tables(told: Facts) -> dict[str, Any]:
    return {
        "most": rows.MOST,
        "headline": rows.headline(told),
        "revisions": rows.revision_rows(told),
        "entries": rows.entry_rows(told),
        "retrievals": (("retrievals", "entries"), rows.retrieval_rows(told)),
        "verdicts": rows.verdict_rows(told),
        "rulings": (rows.RULING_COLUMNS, rows.ruling_rows(told)),
        "expenses": (rows.EXPENSE_COLUMNS, rows.expense_rows(told)),
        "settings": (("setting", "value"), rows.setting_rows(told)),
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
