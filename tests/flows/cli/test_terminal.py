"""Output on a terminal, and positions of options."""

import json
import os
import pty
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from support.small_run import MUG

from coevo.flows.console import output

ROOT = Path(__file__).parents[3]
SHOW = """
import sys
from coevo.flows.console.output import console, table
from coevo.flows.console.progress import Progress
shown = Progress(console(), 3)
shown.note("warm start: step 1")
shown.warn("careful")
shown.close()
console(stderr=True).print("[bold]x[/bold]", style="bold red")
table([{"a": 1}], ("a",))
from coevo.flows.cli.app import main
main(sys.argv[1:])
"""


KILLED = """
from coevo.flows.console.interrupt import at_once, heeded, _heeds
from coevo.flows.console.output import console
from coevo.flows.console.progress import Progress
with heeded():
    progress = Progress(console(), 3)
    with at_once(progress.show_cursor):
        progress.note("r1 update")
        _heeds[0].end_now()
"""


def on_a_terminal(arguments, script=SHOW, **variables):
    """Output of a script on a terminal; by default of progress, a table and a command."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm", **variables},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    while part := _read(ours):
        said += part
    process.wait(60)
    os.close(ours)
    return said.decode()


TABLES = (
    "runs", "log first", "episodes first --failed", "compare first other", "compare other homerules-coevo-rl",
    "bank show first", "bank log first", f"bank why first {MUG.id}", "bank diff first@0 first", "bank rejects first",
    "bank health first",
    "approve --list", "recipes", "recipes --papers", "methods", "envs", "fsck first",
    "status first", "ablate --list", "bank search first mug", "doctor",
)  # fmt: skip
"""Commands that print tables; the dry run prints sentences, which a terminal wraps."""


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", TABLES)
def test_every_table_fits_80_columns(command, coevo, monkeypatch):
    """On a terminal of that width; into a pipe, lines are as wide as their cells."""
    monkeypatch.setattr(output, "PIPED_WIDTH", 80)
    told = coevo(*command.split())
    too_wide = [line for line in told.out.splitlines() if cell_len(line.rstrip()) > 80 and "  " in line.strip()]
    assert told.out
    assert too_wide == []


CELLS = st.one_of(st.none(), st.booleans(), st.integers(-(10**12), 10**12), st.floats(), st.text(st.characters(
    codec="latin-1", exclude_categories=("C",)), max_size=200))  # fmt: skip
LISTED = st.integers(1, 14).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=4))


@settings(max_examples=40, deadline=None)
@given(rows=LISTED)
def test_any_table_fits_80_columns(rows):
    names = [f"column_{number}" for number in range(len(rows[0]) if rows else 1)]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as said:
        patch.setattr(output, "PIPED_WIDTH", 80)
        output.table([dict(zip(names, row, strict=True)) for row in rows], names)
    assert [line for line in said.getvalue().splitlines() if cell_len(line.rstrip()) > 80] == []


def test_each_table_of_a_command_is_printed_in_that_way():
    for path in sorted((ROOT / "flows").rglob("*.py")):
        if path.relative_to(ROOT).as_posix() != "flows/console/output.py":
            assert "rich.table" not in path.read_text(encoding="utf-8"), path


def _read(descriptor):
    try:
        return os.read(descriptor, 65536)
    except OSError:  # its end, on Linux
        return b""


@pytest.mark.parametrize(
    "variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}], ids=str
)
def test_who_wants_no_colour_gets_no_escape_code_at_all(variables):
    said = on_a_terminal(["recipes"], **variables) + on_a_terminal(["log", "--help"], **variables)
    assert "homerules-coevo-rl" in said
    assert "careful" in said
    assert "Example: coevo log" in said
    assert "\x1b" not in said


def test_others_get_them():
    assert "\x1b[1m" in on_a_terminal(["nope"])


def test_the_cursor_is_back_after_an_immediate_end():
    said = on_a_terminal([], KILLED)
    assert said.rindex("\x1b[?25h") > said.index("\x1b[?25l")
    assert "\x1b" not in on_a_terminal([], KILLED, NO_COLOR="1")


def test_the_workspace_may_be_named_before_the_command_and_after_it(coevo, small_workspace, tmp_path, monkeypatch):
    monkeypatch.setenv("COEVO_WORKSPACE", str(tmp_path / "elsewhere"))
    here = coevo("--workspace", small_workspace, "runs", "--json")
    assert (here.code, next(row["run"] for row in json.loads(here.out))) == (0, "first")
    assert "mug" in coevo("--workspace", small_workspace, "bank", "show", "first").out
    assert json.loads(coevo("--workspace", small_workspace, "runs", "--json", "--workspace", tmp_path).out) == []
    assert os.environ["COEVO_WORKSPACE"] == str(tmp_path / "elsewhere")
    assert "--workspace" in coevo("--help").out
