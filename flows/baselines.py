"""Figures of the benchmarks that a run's summary shows beside its own."""

import json
from pathlib import Path
from statistics import fmean

MEASURED = "homerules-coevo-rl"
"""The recipe that they were measured beside."""
RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "homerules"


def equal_time_baseline(results: Path = RESULTS) -> str:
    """Held-out success of policy-only GRPO given a run's wall-clock, as ``make bench`` measured it: mean and range."""
    rates = [json.loads(path.read_text())["success"]["seen-houses"] for path in results.glob("policy-only-*.json")]
    if not rates:
        return "run `make bench`"
    if len(rates) == 1:
        return f"{rates[0]:.3f} (1 seed)"
    return f"{fmean(rates):.3f} ({len(rates)} seeds, {min(rates):.3f} to {max(rates):.3f})"
