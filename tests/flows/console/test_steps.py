"""Each command soon shows that it works, names its steps, and names each once."""

import importlib.util
import io
import os
import pty
import select
import sys
import time
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from coevo.flows.console import steps as module
from coevo.flows.console.progress import shown as progress_shown
from coevo.flows.console.steps import StageClock, Steps, steps_shown
from coevo.tasks.publish.reporter import in_stage, reporter


class Lines(list):
    """Lines that have come through a pipe, once it is closed."""

    pipe: int


@contextmanager
def shown(*arguments):
    """Lines that steps have printed to standard error, which is a pipe."""
    lines, (reader, writer) = Lines(), os.pipe()
    lines.pipe = reader
    with os.fdopen(writer, "w") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        with steps_shown(arguments):
            yield lines
    with os.fdopen(reader) as read:
        lines += read.read().splitlines()


def test_each_step_is_one_line_and_one_within_another_takes_turns_with_it():
    with shown("log") as lines, in_stage("builds the environment"):
        for number in range(3):
            with in_stage("loads the encoder"):
                reporter().note(f"loads the encoder: {number} of 3")
        reporter().warn("it is \x1b[31mold")
    assert lines == ["builds the environment ...", "loads the encoder ...", "warning: it is  [31mold"]


@given(st.lists(st.sampled_from(["", "a", "a: 1 of 2", "b", "b: 1", "c", "r1 update"]), max_size=40))
def test_no_order_of_notes_names_a_stage_twice(notes):
    clock = StageClock()
    named = [note.partition(":")[0] for note in notes if clock.enter(note)]
    assert named == list(dict.fromkeys(note.partition(":")[0] for note in notes if note))


def test_a_stage_lasts_from_its_first_note_also_if_another_took_a_turn():
    now = [0.0]
    clock = StageClock(lambda: now[0])
    for now[0], note in enumerate(("a", "b: 1 of 2", "a: 3 of 4")):
        clock.enter(note)
    now[0] = 9.0
    assert clock.lasting() == "a: 3 of 4, 9 s so far"
    clock.enter("")
    clock.enter("a")
    now[0] = 300.0
    assert clock.lasting() == "a: 4 min so far"


def test_progress_does_not_name_a_step_again():
    out = io.StringIO()
    with shown("log") as lines:
        reporter().note("builds the environment")
        with progress_shown(Console(file=out, width=60), 4) as progress:
            progress.note("builds the environment")
            progress.note("warm start")
    assert (lines, out.getvalue()) == (["builds the environment ..."], "warm start ...\n")


def test_a_command_without_a_step_says_that_it_starts(monkeypatch):
    monkeypatch.setattr(module, "SILENCE_S", 0.0)
    with shown("--workspace", "elsewhere", "log", "run") as lines:
        select.select([lines.pipe], [], [], 60)
    assert lines == ["coevo log starts ..."]
    with shown("--help") as lines:
        select.select([lines.pipe], [], [], 60)
    assert lines == ["coevo starts ..."]


def test_a_command_that_asks_its_user_says_nothing_of_itself(monkeypatch):
    monkeypatch.setattr(module, "SILENCE_S", 0.1)
    with shown("log") as lines:
        reporter().note("")
        time.sleep(0.3)
    assert lines == []


def test_a_quick_command_says_nothing_of_itself():
    with shown("log") as lines:
        pass
    assert lines == []


def test_a_long_step_is_reported_again_on_a_terminal_alone(monkeypatch):
    for name, seconds in {"SILENCE_S": 0.2, "POLL_INTERVAL_S": 0.02, "TERMINAL_INTERVAL_S": 0.05}.items():
        monkeypatch.setattr(module, name, seconds)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream, os.fdopen(ours) as screen:
        steps = Steps("coevo log", stream)
        steps.note("loads the encoder: 1 of 3")
        said = [screen.readline().rstrip() for _ in range(3)]
        steps.close()
    assert said == ["loads the encoder ...", *["loads the encoder: 1 of 3, 0 s so far"] * 2]
    with shown("log") as lines, in_stage("loads the encoder"):
        time.sleep(0.3)
    assert lines == ["loads the encoder ..."]


def test_the_import_of_a_large_library_is_a_step_and_looking_for_it_is_none(tmp_path, monkeypatch):
    (tmp_path / "large_library.py").write_text("import time\n")
    monkeypatch.setitem(module.LIBRARIES, "large_library", "Large Library")
    monkeypatch.syspath_prepend(tmp_path)
    with shown("log") as lines:
        assert importlib.util.find_spec("large_library") is not None
        reporter().note("looks for it")
        import large_library  # noqa: F401
    assert lines == ["looks for it ...", "loads Large Library ..."]
    assert not any(isinstance(finder, module._ReportedImports) for finder in sys.meta_path)


def test_a_reader_that_is_gone_stops_nothing():
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        steps = Steps("coevo log", stream)
        os.close(reader)
        steps.note("loads the encoder")
        steps.close()
