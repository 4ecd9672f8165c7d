"""Trials within the rollout budget against a paired replay: does the gap of matched halves have the same sign?

Candidates and their scripted reader are those of ``harmful``. A candidate has one group of eight in each of five
iterations, as with eight candidates on trial and half of 16 tasks revisited. Compared are candidates whose 95 %
interval over 128 paired replays excludes 0.
"""

from itertools import islice
from statistics import fmean

from benchmarks.bench import Bench, BenchResult
from benchmarks.learning.harmful import LESSONS, drawn, rewards, tried
from coevo.configs.env import HomeRulesConfig
from coevo.envs.registry import make
from coevo.records.draws import key
from coevo.records.intervals import paired

PAIRS, ITERATIONS, TRIALS = 128, 5, 10
"""Pairs of the replay, iterations on trial, and trials of each candidate."""


def run(bench: Bench) -> None:
    """Measure it where it is missing and print the figures."""
    report(bench.cell("homerules", lambda: measure(LESSONS)))


def measure(count: int) -> BenchResult:
    """Agreement by number of iterations on trial, over the clear ones of so many candidates."""
    env, agreed, lost = make(HomeRulesConfig()), [list[bool]() for _ in range(ITERATIONS)], list[float]()
    clear = 0
    for number, lesson in enumerate(islice(drawn(env, count), count)):
        ours, theirs = (
            rewards(env, lesson.task, notes, key("replay", number), PAIRS) for notes in ((lesson.entry,), ())
        )
        found = paired(ours, theirs)
        if found.low <= 0 <= found.high:
            continue
        clear += 1
        for trial in (tried(env, lesson, ITERATIONS, key("trial", number, n)) for n in range(TRIALS)):
            gaps = [a - b for a, b in zip(trial.rewards_with, trial.rewards_without, strict=True)]
            lost.append(-fmean(gaps))
            for iterations, same in enumerate(agreed, start=1):
                same.append(sum(gaps[: iterations * len(gaps) // ITERATIONS]) * found.mean > 0)
    shares = [fmean(same) for same in agreed]
    return {"candidates": clear, "agreement": shares, "success_lost_when_treated": fmean(lost)}


def report(result: BenchResult) -> None:
    """Print agreement by number of iterations on trial."""
    shares = ", ".join(f"{share:.3f}" for share in result["agreement"])
    print(f"\n{result['candidates']} candidates: same sign after 1 to {ITERATIONS} iterations on trial: {shares}")
    print(f"success that a treated episode loses: {result['success_lost_when_treated']:+.3f}; target: agreement 0.80")
