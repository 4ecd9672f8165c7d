"""Progress of transfers."""

import io
import re

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn

from coevo.flows.console.output import Bars, bars


def test_files_and_bytes_are_shown():
    shown = io.StringIO()
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TextColumn("files {task.fields[moved]}"))
    with Progress(*columns, console=Console(file=shown, force_terminal=True, width=80, no_color=True)) as progress:
        meter = Bars(progress, "first")
        meter.begin("sending", 0)
        meter.advance(0, 0)
        meter.begin("sending", 2)
        meter.advance(0, 3000)
        meter.advance(2, 0)
    assert "first: sending 2/2 files 3.0 kB" in re.sub(r"\x1b\[\d*m", "", shown.getvalue())


def test_nothing_is_shown_where_nobody_looks(capsys):
    with bars("first") as meter:
        meter.begin("sending", 2)
        meter.advance(2, 10)
    assert capsys.readouterr() == ("", "")
