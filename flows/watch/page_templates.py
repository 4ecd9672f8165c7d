"""Templates of the live page. Every text is escaped, and characters that act or hide are visible marks."""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coevo.records.inert import marked

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
STATIC = HERE / "static"
PAGES = HERE / "pages"
MAX_TEXT_CHARS = 20_000
"""Most characters of a text that a page shows."""

MIN_SHOWN = 0.0005
"""Least number of which three digits show anything."""


@cache
def page_environment(escaping: bool = True) -> "Environment":
    """Environment of the templates; a test turns the escaping off, to try what else keeps a text from acting."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=escaping,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"cell": cell, "seconds": seconds}
    made.globals["version"] = _version()
    return made


def render(name: str, values: Mapping[str, Any], escaping: bool = True) -> str:
    """Render a page."""
    return page_environment(escaping).get_template(name).render(values)


def cell(value: object) -> object:
    """A value as readers see it: three digits of a number, its power of ten where they are all 0, a dash for None."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}" if value == 0 or abs(value) >= MIN_SHOWN else f"{value:.1e}"
    return value


def seconds(value: float) -> str:
    """A duration."""
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _finalized(value: object) -> object:
    """Each printed text, cut and with marks; markup that templates made themselves stays."""
    if type(value) is not str:
        return value
    shown = value if len(value) <= MAX_TEXT_CHARS else f"{value[:MAX_TEXT_CHARS]} … ({len(value):,} characters)"
    return marked(shown)


def _version() -> str:
    """Digest of the scripts and styles, so that browsers keep them until they change."""
    digest = sha256()
    for file in sorted(STATIC.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
