"""The comparison with an earlier commit: figures of kept cells, and a history that lacks the commit."""

import pytest

from benchmarks.bench import Bench
from benchmarks.running import before
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path / "cells", Workspace(tmp_path / "runs"))


def test_ratios_are_of_means_and_success_is_a_difference(bench, capsys):
    for seed in before.SEEDS:
        sides = {"before": (100.0 * seed, 50.0, 0.9), "here": (90.0 * seed, 60.0, 0.875)}
        pair = {
            side: {"processor": processor, "seconds": seconds, **dict.fromkeys(before.PANELS, success)}
            for side, (processor, seconds, success) in sides.items()
        }
        bench.cell(f"seed-{seed}", lambda pair=pair: pair)
    before.run(bench)
    said = capsys.readouterr().out.splitlines()
    assert said[-3:] == [
        "processor: 0.900 times (at most 1.05)", "seconds: 1.200 times (at most 1.05)",
        "seen-houses: -0.025 (at least -0.02)",
    ]  # fmt: skip
    assert "processor       300.000  270.000" in said


def test_a_history_without_the_commit_is_one_line(bench, monkeypatch):
    monkeypatch.setattr(before, "COMMIT", "0" * 40)
    bench.workspace.root.mkdir()
    with pytest.raises(CoevoError, match=r"has no commit 0+: fetch the whole history"):
        before._earlier(bench.workspace.root / "tree")
