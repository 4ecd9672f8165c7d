"""Progress of a run: one row per revision, lines for people and logs alike."""

import io
import sys
import time
from contextlib import closing

import pytest
from rich.console import Console
from rich.markup import escape

from coevo.flows.console import progress as module
from coevo.flows.console.interrupt import _Heed
from coevo.flows.console.progress import COLUMNS, Progress
from coevo.lineage.revision.manifest import Manifest


def manifest(revision, **metrics):
    state = {
        "revision": revision,
        "iteration": revision,
        "config": {"evaluation": {"panels": ["new"]}},
        "metrics": metrics,
    }
    seconds = {
        "cost/seconds/rollout": 0.5,
        "cost/seconds/update": 0.25,
        "cost/seconds/judge": 0.125,
        "cost/seconds/wall": 2.0,
    }
    return Manifest.of(state, {"metrics": seconds})


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def shown(act, iterations=4):
    out = io.StringIO()
    act(Progress(Console(file=out, width=60), iterations))
    return out.getvalue().splitlines()


def test_a_row_holds_what_its_columns_say():
    metrics = {
        "agent/success/train": 0.5,
        "agent/success/new": 0.75,
        "bank/size": 3.0,
        "bank/admitted": 2.0,
        "bank/rejected": 1.0,
    }
    header, row = shown(lambda progress: progress.revision(manifest(1, **metrics)))
    assert header.split() == [word for name, _ in COLUMNS for word in name.split()]
    assert row.split() == ["1", "1", "0.500", "0.750", "3", "2/1", "0.5", "0.2", "0.1", "1.1"]


def test_what_was_not_measured_stays_empty():
    _, row = shown(lambda progress: progress.revision(manifest(0)))
    assert row.split() == ["0", "0", "0.5", "0.2", "0.1", "1.1"]


def test_rows_are_never_broken_and_the_header_comes_back():
    lines = shown(lambda progress: [progress.revision(manifest(n)) for n in range(25)], iterations=25)
    assert sum("held-out" in line for line in lines) == 2
    assert len(lines) == 27
    assert {len(line) for line in lines} == {80}


def test_where_there_is_no_terminal_a_stage_is_named_once():
    def notes(progress):
        for step in range(3):
            progress.note(f"warm start: step {step}")
        progress.warn("it [did] not read")

    assert shown(notes) == ["warm start ...", "warning: it [did] not read"]


def test_where_there_is_no_terminal_a_stage_of_a_revision_is_named_once_it_takes_long():
    now, out = [0.0], io.StringIO()
    progress = Progress(Console(file=out, width=60), 4, lambda: now[0])
    for name, turns in (("r3 rollout", 5), ("r3 [judge]", 3)):
        progress.note(name)
        for turn in range(turns):
            now[0] += 25.0
            progress.note(f"{name}: {turn} of 8 episodes are over")
        progress.note("")
        now[0] += 100.0
        progress.remind()  # between two stages
    progress.close()
    assert out.getvalue().splitlines() == [
        "r3 rollout: 2 of 8 episodes are over, 1 min so far",
        "r3 [judge]: 2 of 8 episodes are over, 1 min so far",
    ]


def test_a_stage_that_reports_nothing_is_named_as_well(monkeypatch):
    monkeypatch.setattr("coevo.flows.console.progress.REVISION_REPORT_INTERVAL_S", 0.0)
    out = io.StringIO()
    with closing(Progress(Console(file=out, width=60), 4)) as progress:
        progress.note("r3 update")
        wait_until(out.getvalue)
    assert out.getvalue().splitlines()[0] == "r3 update: 0 min so far"
    assert not progress.watcher.is_alive()


def test_a_stage_is_named_once_however_often_another_takes_turns_with_it():
    def notes(progress):
        for probed in range(7):
            progress.note(f"warm start: step {probed}")
            for episode in range(2):
                progress.note(f"initial policy: {episode} of 2 episodes are over")
        progress.note("")
        progress.note("initial policy")

    assert shown(notes) == ["warm start ...", "initial policy ..."]


def test_a_stage_that_takes_turns_with_another_is_told_of_all_the_same():
    now, out = [0.0], io.StringIO()
    progress = Progress(Console(file=out, width=60), 4, lambda: now[0])
    for step in range(8):
        for name in ("r3 rollout", "r3 reflect"):
            now[0] += 10.0
            progress.note(f"{name}: {step} of 8")
    progress.close()
    assert out.getvalue().splitlines() == [
        "r3 reflect: 3 of 8, 1 min so far",
        "r3 reflect: 6 of 8, 2 min so far",
    ]


def test_on_a_terminal_a_long_stage_shows_how_long_it_has_taken():
    now, out = [0.0], io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, highlight=False)
    with closing(Progress(console, 4, lambda: now[0])) as progress:
        progress.note("opens [the] stores")
        for now[0], text in ((5.0, "opens [the] stores"), (12.0, "opens [the] stores: 12 s so far")):
            progress.remind()
            assert progress.status.status == escape(text)
        progress.note("r3 rollout: 2 of 8 episodes are over")
        now[0] += 600.0
        progress.remind()
        assert progress.status.status == "r3 rollout: 2 of 8 episodes are over, 10 min so far"
    assert "opens [the] stores ...\n" in out.getvalue()
    assert "r3 rollout ..." not in out.getvalue()


def test_a_terminal_without_escape_codes_gets_a_line_every_ten_seconds(monkeypatch):
    now, out = [0.0], io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    progress = Progress(Console(file=out, width=80, force_terminal=False, color_system=None), 4, lambda: now[0])
    progress.note("r3 update")
    for now[0] in range(1, 31):
        progress.remind()
    progress.close()
    assert out.getvalue().splitlines() == [f"r3 update: {seconds} s so far" for seconds in (10, 20, 30)]


def test_on_a_terminal_the_stage_stands_beside_the_spinner():
    out = io.StringIO()
    with closing(Progress(Console(file=out, width=60, force_terminal=True), 4)) as progress:
        progress.note("r3 rollout: 2 of 8 [episodes] are over")
    assert "r3 rollout: 2 of 8 [episodes] are over" in out.getvalue()


def test_a_quiet_console_leaves_what_others_print(capsys):
    with closing(Progress(Console(quiet=True, force_terminal=True), 4)) as progress:
        progress.note("r3 rollout")
        print("an environment's own line")
        sys.stderr.write("a server's last line\n")
    assert capsys.readouterr() == ("an environment's own line\n", "a server's last line\n")


def test_what_ends_the_watcher_is_raised_where_the_run_reports_next(monkeypatch):
    def fail(progress):
        raise SystemExit(1)

    monkeypatch.setattr(Progress, "remind", fail)
    with closing(Progress(Console(file=io.StringIO(), width=60), 4)) as progress:
        progress.note("r3 update")
        progress.watcher.join(60)
        with pytest.raises(SystemExit):
            progress.revision(manifest(3))
        progress.revision(manifest(3))


def test_a_process_that_ends_at_once_shows_the_cursor(monkeypatch):
    heed, seen = _Heed(), []
    monkeypatch.setattr("coevo.flows.console.interrupt._heeds", [heed])

    def show_cursor(progress):
        seen.append(progress)

    monkeypatch.setattr(Progress, "show_cursor", show_cursor)
    with module.shown(Console(file=io.StringIO()), 4) as progress:
        for action in heed.actions:
            action()
        assert seen == [progress]
    assert heed.actions == []


def test_where_there_is_no_terminal_a_long_stage_is_told_of_every_so_often():
    now, out = [0.0], io.StringIO()
    progress = Progress(Console(file=out, width=60), 4, lambda: now[0])
    for step in range(8):
        progress.note(f"warm start: step {step} of at most 900, loss {step / 10}, success [0.5]")
        now[0] += 6.0
    assert out.getvalue().splitlines() == [
        "warm start ...",
        "warm start: step 3 of at most 900, loss 0.3, success [0.5]",
        "warm start: step 6 of at most 900, loss 0.6, success [0.5]",
    ]
