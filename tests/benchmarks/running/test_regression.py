"""Kept figures beside new ones."""

import json

import pytest

from benchmarks import __main__ as command
from benchmarks.bench import Bench
from benchmarks.running.regression import FIGURES, Figure, check
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

SPEED, SHARE = Figure("peers", "recipe", ("trl", "ratio"), "more"), Figure("peers", "recipe", ("share",), "less")


@pytest.fixture
def kept(tmp_path):
    bench = Bench(tmp_path / "results", Workspace(tmp_path / "bench" / "peers"))
    bench.cell("recipe", lambda: {"trl": {"ratio": 4.0}, "share": 0.04})
    return bench


def measuring(ratio, share):
    return lambda bench: bench.cell("recipe", lambda: {"trl": {"ratio": ratio}, "share": share})


def test_a_figure_may_be_three_tenths_worse_and_no_more(kept, capsys):
    assert check("peers", kept, measuring(3.1, 0.051), (SPEED, SHARE)) == []
    assert capsys.readouterr().out.splitlines()[1:] == [
        "peers recipe trl ratio: 4 kept, 3.1 now",
        "peers recipe share: 0.04 kept, 0.051 now",
    ]
    assert check("peers", kept, measuring(3.05, 0.053), (SPEED, SHARE)) == [
        "peers recipe trl ratio: 4 kept, 3.05 now",
        "peers recipe share: 0.04 kept, 0.053 now",
    ]


def test_it_is_measured_anew_each_time_and_what_is_kept_stays(kept):
    before = (kept.cells / "recipe.json").read_text()
    check("peers", kept, measuring(9.0, 0.01), (SPEED,))
    assert check("peers", kept, measuring(1.0, 0.01), (SPEED,)) == ["peers recipe trl ratio: 4 kept, 1 now"]
    assert (kept.cells / "recipe.json").read_text() == before


def test_without_a_kept_figure_nothing_is_run(kept):
    other = Figure("peers", "other", ("ratio",), "more")
    with pytest.raises(
        CoevoError, match=r"other\.json: there is nothing to compare with; run python -m benchmarks peers"
    ):
        check("peers", kept, lambda _: pytest.fail("it was run"), (other,))
    with pytest.raises(CoevoError, match=r"ui: depends on the machine.*choose from peers"):
        check("ui", kept, lambda _: pytest.fail("it was run"), (SPEED,))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: "-".join((figure.benchmark, figure.cell, *figure.keys)))
def test_every_figure_is_kept(figure):
    assert figure.of(Bench.of(figure.benchmark)) > 0
    assert figure.benchmark in command.BENCHMARKS


def test_the_command_fails_where_something_is_worse(kept, monkeypatch, capsys):
    monkeypatch.setattr(command.Bench, "of", lambda name: kept)
    monkeypatch.setitem(command.BENCHMARKS, "trainer", lambda bench: bench.cell("processes", lambda: {"speedup": 1.0}))
    kept.cell("processes", lambda: {"speedup": 1.9})
    assert command.main(["--check", "trainer"]) == 1
    assert capsys.readouterr().err == "benchmarks: worse than it was: trainer processes speedup: 1.9 kept, 1 now\n"
    (kept.cells / "processes.json").write_text(json.dumps({"speedup": 1.1}))
    assert command.main(["--check", "trainer"]) == 0
