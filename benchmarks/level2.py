"""The comparison of ``homerules`` at level 2: six families of tasks, up to ten steps, and more of everything to learn.

The recipes are those of level 1 with nothing but the level changed: the table says how far they carry.
"""

from benchmarks.bench import Bench
from benchmarks.homerules import ITERATIONS, SEEDS, SETTINGS, measure, report

LEVEL = ("env.level=2",)


def run(bench: Bench) -> None:
    """Measure what is missing and print the table."""
    report(measure(bench, SEEDS, ITERATIONS, (*SETTINGS, *LEVEL)))
