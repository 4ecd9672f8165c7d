"""What the reading commands print: one JSON document, or text in which nothing is taken for markup."""

import json
import os
import sys
from collections.abc import Mapping, Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 240
"""Columns of a line where standard output is no terminal."""
PLAIN_TERMINALS = ("dumb", "unknown")


def document(value: object) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))


def line(text: str = "") -> None:
    """A line for people."""
    _console().print(plain(text), soft_wrap=True)


def fault(text: str) -> None:
    """A line on standard error for what a command refuses."""
    sys.stderr.write(f"coevo: {plain(' '.join(text.split())).plain}\n")


def table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """These columns of the rows, numbers to the right; nothing where there are no rows."""
    if not rows:
        return
    shown = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        numeric = any(isinstance(row[name], int | float) for row in rows)
        shown.add_column(name.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(plain(cell(row[name])) for name in columns))
    _console().print(shown)


def cell(value: object) -> str:
    """A value as people read it; nothing for what is not there."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def plain(text: str) -> Text:
    """Text as it is: no markup, and no control characters, which a terminal would obey."""
    return Text("".join(character if character.isprintable() else " " for character in text))


def console(stderr: bool = False, quiet: bool = False) -> Console:
    """The console of every command: colours, bold and moving lines only where the terminal and the user want them.

    ``NO_COLOR`` and ``TERM=dumb`` mean no escape codes at all; Rich alone would leave out nothing but the colours.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in PLAIN_TERMINALS:
        return Console(stderr=stderr, quiet=quiet, highlight=False, force_terminal=False, color_system=None)
    return Console(stderr=stderr, quiet=quiet, highlight=False)


def _console() -> Console:
    made = console()
    if not sys.stdout.isatty():
        made.width = PIPED_WIDTH
    return made
