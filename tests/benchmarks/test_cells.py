"""Figures of the benchmarks, by hand, and continuing where one was stopped."""

import json
import subprocess
import sys

import psutil
import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.bench import Bench
from benchmarks.running.newcomer import resident
from benchmarks.speed import seconds
from benchmarks.speed.orchestration import medians
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import Workspace


def revision(timestamp, **spent):
    rates = {f"cost/seconds/{name.replace('_', ' ')}": value for name, value in spent.items()}
    return Manifest({}, {"timestamp": timestamp, "metrics": rates | {"policy/update/tokens": 7.0}})


HISTORY = [
    revision(1_000, warm_start=60.0, evaluate=3.0, wall=64.0),
    revision(6_000, gate_panels=2.0, rollout=1.0, update=1.0, commit=0.25, wall=5.0),
    revision(9_000, rollout=1.0, update=0.5, judge=0.25, commit=0.125, evaluate=1.0, wall=3.0),
]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path / "results", Workspace(tmp_path / "workspace"))


def test_a_cell_that_is_there_is_not_measured_again_and_one_that_fails_leaves_nothing(bench):
    first = bench.cell("joint-1", lambda: {"success": 0.5})
    assert first == bench.cell("joint-1", lambda: pytest.fail("measured twice"))
    assert first["success"] == 0.5
    assert set(first["measured_on"]) == {"code", "cores", "machine", "python", "torch"}
    assert json.loads((bench.cells / "joint-1.json").read_text()) == first
    with pytest.raises(ZeroDivisionError):
        bench.cell("joint-2", lambda: {"success": 1 / 0})
    assert bench.cell("joint-2", lambda: {"success": 0.25})["success"] == 0.25


def test_the_loop_counts_learning_not_measuring_or_preparing_or_committing_beside_it():
    assert seconds.loop(HISTORY) == 1.0 + 1.0 + 1.0 + 0.5 + 0.25


def test_orchestration_is_what_learning_leaves_of_the_time_between_commits():
    assert seconds.orchestration(*HISTORY[1:]) == 3.0 - 1.0 - 0.5 - 0.25 - 1.0
    assert seconds.share(*HISTORY[1:]) == 0.25 / 2.0


def test_medians_leave_out_the_start_and_two_cold_iterations():
    cold = [revision(second * 1_000, rollout=50.0) for second in (0, 60, 120)]
    warm = [
        revision(122_000, rollout=1.0, judge=0.5, commit=0.25),
        revision(126_000, rollout=2.0, evaluate=1.0, commit=0.5),
        revision(129_000, rollout=2.5, commit=0.25),
    ]
    assert medians([*cold, *warm]) == {
        "iterations": 3,
        "stages": {"rollout": 2.0, "judge": 0.0, "commit": 0.25, "evaluate": 0.0},
        "orchestration_seconds": 0.5,  # of 0.5, 1.0 and 0.5
        "orchestration_share": 0.25,  # of 0.5 / 2, 1 / 3 and 0.5 / 3
    }


def test_resident_memory_counts_descendants():
    own = psutil.Process()
    before = resident(own)
    hog = [sys.executable, "-c", "held = bytearray(10**8); print(flush=True); input()"]
    with subprocess.Popen(hog, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        grown = resident(own) - before
        child.communicate(b"\n")
    assert 0.8e8 < grown < 2e8


def test_an_unknown_benchmark_is_a_line_that_names_those_there_are(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["speed"])
    assert stop.value.code == 2
    assert f"no benchmark 'speed': choose from {', '.join(BENCHMARKS)}" in capsys.readouterr().err
