"""Times, memory and losses of a gateway before a stub engine, each in a process of its own."""

import pytest

from benchmarks.speed import gateway_overhead as bench


def test_figures_are_shown_beside_their_targets(capsys):
    bench.report(
        {"median_ms": 1.5, "p95_ms": 5.0, "direct_median_ms": 0.5, "cpu_ms": 1.1, "agents_ratio": 1.01, "open": 1000,
         "gib": 0.5, "kept": 999}
    )  # fmt: skip
    said = capsys.readouterr().out
    assert "1.50 ms added in the median (target 2), 5.00 ms in the 95th percentile (target 6)" in said
    assert "1.010 × that of the engine alone (target 1.2)" in said
    assert "1000 sessions open at once: 0.50 GiB (target 1.5), 1 lost" in said


@pytest.mark.full
@pytest.mark.timeout(600)
def test_calls_reach_both_and_sessions_are_kept(monkeypatch):
    monkeypatch.setattr(bench, "WARM", 2)
    found = bench.overhead(calls=20, rounds=2)
    assert 0 < found["direct_median_ms"] < found["gateway_median_ms"]
    found = bench.agents(count=4, turns=2, delay=0.2)
    assert 10 * found["direct_p95_s"] >= 1
    found = bench.sessions(count=8)
    assert (found["open"], found["kept"]) == (8, 8)
