"""Share of random mutants that the mirrored quick tests notice; survivors are listed with their lines."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from difflib import ndiff
from fnmatch import fnmatch
from functools import cache, partial

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.mutation.mutant_trial import MutantTrial, opened
from benchmarks.mutation.sample import Mutant, draw, mutated

SAMPLES = {2611: 200, 2612: 200}
"""Mutants by seed. The second sample is measured once the tests for survivors of the first have been written."""
CELL = 20
"""Mutants per cell; an interrupted measurement continues with the cell that is missing."""
TARGET = 0.85
EQUIVALENT = (
    ("*", "*slots=False*", "a class without slots holds the same values in more memory"),
    ("memory/exchange/exchange.py", "ROWS = *", "rows are read in portions of any size"),
    ("memory/admission/replay.py", "admitted=True,", "the verdict is replaced once its gain is known"),
    (
        "configs/compositions/bank_conflicts.py",
        '*type >= "skills"*',
        "no other type of writer comes later in the alphabet",
    ),
    ("models/losses/vocabulary.py", "*logits.gather(+1,*", "the last dimension of two is dimension 1"),
    (
        "memory/bank/compaction.py",
        "most = * / rows.nbytes",
        "it bounds whole numbers, so its fraction is of no account",
    ),
    ("memory/exchange/exchange.py", "longest = *as_py() or *", "no length of an empty batch exceeds the limit"),
    ("memory/similarity.py", "BUCKETS = *", "the bound holds for any number of buckets"),
    ("memory/library.py", "grown = *", "an array that grows in other steps holds the same values"),
    ("records/draws.py", "*drawn, strict=False*", "the array is made with one row per key"),
    ("memory/similarity.py", "ROUNDING = *", "the bound is loosened further, and the exact comparison follows"),
    ("memory/bank/compaction.py", "*rows.slice(0, -1)*", "a slice of negative length is empty, as one of length 0"),
    ("memory/retrieval/encoder.py", "BATCH = *", "a vector does not depend on its batch"),
    ("memory/retrieval/encoder.py", "LENGTHS = *", "a vector does not depend on its padding"),
    ("memory/retrieval/postings.py", "READ = *", "rows are read in portions of any size"),
    ("memory/bank/content_hash.py", "*if len(ids) > 0 else True", "one row is in order"),
    ("memory/exchange/exchange.py", "*default=-1)", "a path without parts is short either way"),
    ("memory/similarity.py", "FEW = *", "the filter for many texts leaves out only those that the comparison would"),
)
"""Mutants that no test of behaviour can notice: patterns of paths and mutated lines, with reasons."""


def run(bench: Bench) -> None:
    """Measure the cells that are missing and print the survivors of each sample."""
    with ExitStack() as stack:
        trial = cache(lambda: stack.enter_context(opened(ROOT)))
        for seed, count in SAMPLES.items():
            chosen = draw(ROOT, count, seed)
            cells = {first // CELL + 1: chosen[first : first + CELL] for first in range(0, count, CELL)}
            report(
                seed, [bench.cell(f"seed-{seed}-{n:02}", partial(measure, trial, cell)) for n, cell in cells.items()]
            )


def measure(trial: Callable[[], MutantTrial], mutants: Sequence[Mutant]) -> BenchResult:
    """Number of mutants and the survivors: path and line number, the line, and what became of it."""
    survivors = []
    for mutant in mutants:
        noticed = trial().notices(mutant)
        print("." if noticed else f"\n{shown(mutant)}", end="", flush=True)
        survivors += [] if noticed else [shown(mutant)]
    return {"mutants": len(mutants), "survivors": survivors}


def shown(mutant: Mutant) -> list[str]:
    """Path with line number, the line, and what became of it."""
    before = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()
    after = mutated(ROOT, mutant).splitlines()
    changed = [line for line in ndiff(before, after) if line[:2] in {"- ", "+ "}]
    return [f"{mutant.path}:{mutant.position[0]}", *(" ".join(line[2:].split()) for line in changed)]


def report(seed: int, cells: Sequence[BenchResult]) -> None:
    """Print the share, the share without equivalent mutants, and the survivors."""
    total = sum(cell["mutants"] for cell in cells)
    survivors = [row for cell in cells for row in cell["survivors"]]
    equivalent, noticed = sum(bool(_reason(row)) for row in survivors), total - len(survivors)
    print(
        f"\nmutants, seed {seed}: tests notice {noticed} of {total}, {noticed / total:.1%} (target {TARGET:.0%});",
        end=" ",
    )
    print(f"{noticed / (total - equivalent):.1%} without {equivalent} that change no behaviour. Not noticed:")
    for row in survivors:
        why = _reason(row)
        print(f"  {row[0]}\n    - {row[1]}\n    + {row[-1]}" + (f"\n      equivalent: {why}" if why else ""))


def reason(path: str, after: str) -> str:
    """Reason why a mutated line of a module changes no behaviour; empty where it may change some."""
    found = (why for paths, lines, why in EQUIVALENT if fnmatch(path, paths) and fnmatch(after, lines))
    return next(found, "")


def _reason(row: Sequence[str]) -> str:
    return reason(row[0].partition(":")[0], row[-1])
