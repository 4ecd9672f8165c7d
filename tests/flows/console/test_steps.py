"""Each command soon shows that it works, names its steps, and names each once."""

import importlib.util
import json
import os
import pty
import re
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.flows.console import steps as module
from coevo.flows.console.steps import StageClock, Steps, steps_shown
from coevo.flows.servers.daemon import down
from coevo.tasks.publish.report import in_stage, reporter

COEVO = [sys.executable, "-X", "importtime", "-m", "coevo.flows"]
HEAVY = {"deepspeed", "dvc", "great_expectations", "lancedb", "mlflow", "peft", "prefect", "torch", "transformers"}
STARTS = re.compile(r"coevo( \w+)? starts \.\.\.")
IMPORT = "import time:"


@contextmanager
def shown(*arguments):
    """Lines that steps have printed to standard error, which is a pipe."""
    lines, (reader, writer) = [], os.pipe()
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


def test_a_command_without_a_step_says_that_it_starts(monkeypatch):
    monkeypatch.setattr(module, "SILENCE_S", 0.0)
    with shown("--workspace", "elsewhere", "log", "run") as lines:
        time.sleep(0.3)
    assert lines == ["coevo log starts ..."]
    with shown("--help") as lines:
        time.sleep(0.3)
    assert lines == ["coevo starts ..."]


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


def output_of(*arguments, cwd, **how):
    """Lines of a command with the seconds at which they came; imports are named as they end."""
    start = time.monotonic()
    merged = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([*COEVO, *arguments], cwd=cwd, **merged, **how) as process:
        return [(time.monotonic() - start, line.rstrip("\n")) for line in process.stdout]


COMMANDS = [
    ("run", "homerules-grpo", "--dry-run"),
    ("run", "homerules-grpo", "--dry-run", "--json"),
    ("run", "homerules-grpo", "evaluation.panels=[none]"),
    ("resume", "new"),
    ("evaluate", "first"),
    ("serve", "first"),
    ("package", "first"),
    ("promote", "household/1"),
    ("compare", "first", "other"),
    ("compare", "first@0", "other", "--evaluate"),
    ("branch", "first", "second"),
    ("report", "first"),
    ("log", "first"),
    ("runs", "--json"),
    ("recipes",),
    ("doctor",),
    ("play", "homerules"),
    ("envs", "check", "homerules"),
    ("envs",),
    ("ablate", "--list"),
    ("ablate", "jerp-frozen-rules", "--dry-run"),
    ("bank", "show", "first"),
    ("bank", "search", "first", "mug"),
    ("bank", "retrieval", "first"),
    ("gc",),
    ("fsck",),
    ("tag", "first", "best"),
    ("rollback", "first", "--to", "1"),
    ("schedule", "list"),
    ("pull", "remote"),
]


@pytest.fixture(scope="module")
def usual():
    """Seconds until the help is there."""
    return max(when for when, line in output_of("--help", cwd=None) if not line.startswith(IMPORT))


@pytest.mark.full
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_shows_a_sign_of_life_before_it_loads_a_large_library(copied, tmp_path, usual, arguments):
    lines = output_of(*arguments, cwd=tmp_path, env={**os.environ, "COEVO_WORKSPACE": str(copied)})
    down(copied)
    first = next(number for number, (_, line) in enumerate(lines) if not line.startswith(IMPORT))
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for _, line in lines[:first]}
    assert not loaded & HEAVY
    assert lines[first][0] < 2 + 2 * usual, lines[first]
    said = [line for _, line in lines if not line.startswith(IMPORT)]
    named = [line for line in said if line.endswith(" ...")]
    assert len(named) == len(set(named))
    assert "Traceback (most recent call last):" not in said


@pytest.mark.full
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_dry_run_names_its_steps_beside_its_report_and_apart_from_a_document(tmp_path, as_json):
    line = [sys.executable, "-m", "coevo.flows", "run", "homerules-grpo", "--dry-run", *(["--json"] if as_json else [])]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    said, other = (done.stderr, done.stdout) if as_json else (done.stdout, done.stderr)
    steps = [line for line in said.splitlines() if line.endswith(" ...") and not STARTS.fullmatch(line)]
    assert steps[0].startswith("loads ")
    assert steps[-3:] == [
        "builds the environment ...",
        "plays the first turns with a random agent ...",
        "forecasts memory, disk and time ...",
    ]
    assert json.loads(other)["ready"] if as_json else other == ""
