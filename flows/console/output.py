"""Output of the commands: one JSON document, or text without markup."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from coevo.records.inert import shown

PIPED_WIDTH = 240
"""Line width in characters if standard output is not a terminal."""
PLAIN_TERMINALS = ("dumb", "unknown")


class Bars:
    """Progress bars, one per transfer, which count files and show the bytes so far."""

    def __init__(self, progress: Progress, run: str) -> None:
        self._progress = progress
        self._run = run
        self._task: TaskID | None = None
        self._size = 0

    def begin(self, doing: str, files: int) -> None:
        """Start a bar for a number of files."""
        self._task = self._progress.add_task(f"{self._run}: {doing}", total=files, moved="") if files else None
        self._size = 0

    def advance(self, files: int, size: int) -> None:
        """Add finished files, and their size in bytes."""
        self._size += size
        if self._task is not None:
            self._progress.update(self._task, advance=files, moved=decimal(self._size))


def degrade() -> None:
    """Let a terminal that lacks a character show a replacement for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def document(value: object) -> None:
    """Print one JSON document to standard output."""
    encodes = (sys.stdout.encoding or "").lower().startswith("utf")
    typer.echo(json.dumps(value, indent=1, ensure_ascii=not encodes))


def result(as_json: bool, value: object, *lines: str) -> None:
    """Print what a command did, as a JSON document or as lines of text."""
    if as_json:
        document(value)
        return
    for text in lines:
        line(text)


def line(text: str = "") -> None:
    """Print a line of text."""
    _console().print(plain(text), soft_wrap=True)


def fault(text: str) -> None:
    """Print an error message as one line to standard error."""
    with suppress(OSError):  # the exit code tells it, too
        sys.stderr.write(f"coevo: {plain(' '.join(text.split())).plain}\n")


def table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Print columns of the rows, numbers right-aligned; print nothing without rows.

    A table that is too wide wraps its widest columns, at first between words, then within them. The words of the first
    column are names to copy, and stay whole.
    """
    if not rows:
        return
    heads = [name.replace("_", " ") for name in columns]
    cells = [[plain(cell(row[name])) for name in columns] for row in rows]
    target = _console()
    gap, widths = _layout(heads, cells, target.width)
    drawn = Table(box=None, header_style="bold", pad_edge=False, padding=(0, gap, 0, 0))
    for name, head, width in zip(columns, heads, widths, strict=True):
        numeric = any(isinstance(row[name], int | float) for row in rows)
        drawn.add_column(head, justify="right" if numeric else "left", overflow="fold", width=width)
    for row in cells:
        drawn.add_row(*row)
    target.print(drawn)


def _layout(heads: Sequence[str], rows: Sequence[Sequence[Text]], room: int) -> tuple[int, list[int]]:
    """Gap between columns, and their widths."""
    columns = [[Text(head), *texts] for head, *texts in zip(heads, *rows, strict=True)]
    widths = [max(text.cell_len for text in texts) for texts in columns]
    words = [max(cell_len(word) for text in texts for word in text.plain.split() or [""]) for texts in columns]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= room else 1
    room -= gap * (len(widths) - 1)
    for least in (words, words[:1] + [1] * (len(widths) - 1), [1] * len(widths)):
        while sum(widths) > room and any(width > most for width, most in zip(widths, least, strict=True)):
            wide = max(range(len(widths)), key=lambda column: (widths[column] > least[column]) * widths[column])
            widths[wide] -= 1
    return gap, widths


def cell(value: object) -> str:
    """Format a value for a table; None is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def plain(text: str) -> Text:
    """Return text without markup, and without control characters, which a terminal would execute."""
    return Text(shown(text))


def console(stderr: bool = False, quiet: bool = False) -> Console:
    """Create the console of a command, with colours, bold and animation only if terminal and user want them.

    ``NO_COLOR`` and ``TERM=dumb`` disable all escape codes; Rich alone would disable only colours.
    """
    if is_plain():
        return Console(stderr=stderr, quiet=quiet, highlight=False, force_terminal=False, color_system=None)
    return Console(stderr=stderr, quiet=quiet, highlight=False)


def is_plain() -> bool:
    """Return True if the user or the terminal wants no escape codes."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in PLAIN_TERMINALS


def _console() -> Console:
    made = console()
    if not sys.stdout.isatty():
        made.width = PIPED_WIDTH
    return made


@contextmanager
def bars(run: str) -> Iterator[Bars]:
    """Progress bars on standard error; without a terminal, they show nothing."""
    moved = TextColumn("files {task.fields[moved]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), moved)
    shown = console(stderr=True)
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as progress:
        yield Bars(progress, run)
