"""Several who do the same work in turns, and how often the seconds of one go into those of another.

Processor seconds are told beside those of the clock: on a machine that does much else they say more.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter, process_time

from benchmarks.bench import BenchResult

TimedPair = tuple[float, float]
"""Seconds by the clock, and of the processor."""
Round = Mapping[str, Mapping[int, TimedPair]]
"""Time spent, by name and batch size; ``coevo`` has one, 0."""


def spending(work: Callable[[], object], cpu: Callable[[], float] = process_time) -> TimedPair:
    """Time of a piece of work; ``cpu`` returns the processor seconds used so far by the process that does it."""
    used, since = cpu(), perf_counter()
    work()
    return perf_counter() - since, cpu() - used


def compared(rounds: Sequence[Round], name: str) -> BenchResult:
    """How often our seconds go into a peer's at its best batch size, which is the one with the least median."""
    seconds = {size: median(each[name][size][0] for each in rounds) for size in rounds[0][name]}
    best = min(seconds, key=lambda size: seconds[size])
    clock, cpu = ([each[name][best][unit] / each["coevo"][0][unit] for each in rounds] for unit in (0, 1))
    return {
        "best": best,
        "ratio": median(clock),
        "ratios": clock,
        "cpu_ratio": median(cpu),
        "seconds": {str(size): spent for size, spent in seconds.items()},
    }
