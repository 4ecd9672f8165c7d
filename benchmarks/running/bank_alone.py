"""The bank alone: import, retrieval at 10,000 entries, readers beside a writer, and a toy agent that gets better."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

import coevo
from benchmarks.bench import Bench, BenchResult
from benchmarks.learning.toy_agent import improve
from coevo.lineage.atomic_files import write_atomically
from coevo.records.draws import generator, key

IMPORTS, ENTRIES, QUESTIONS, READERS, SECONDS = 7, 10_000, 200, 8, 10.0
SEEDS = (1, 2, 3, 4, 5)
IMPORT_TARGET_S, RETRIEVE_TARGET_MS, TOY_TARGET = 0.4, 1.0, 0.95
IMPORT = """
import sys, time
begin, spent = time.perf_counter(), time.process_time()
import coevo
coevo.open_bank
print(time.perf_counter() - begin, time.process_time() - spent, len({"torch", "prefect"} & sys.modules.keys()))
"""
READER = """
import json, sys
from pathlib import Path
import coevo
bank, announced, end = coevo.open_bank(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
reads = stale = torn = 0
print(flush=True)
while not end.exists():
    least = int(announced.read_text())
    number, held = bank.revision.number, len(bank.entries())
    bank.retrieve("lesson", k=1)
    reads, stale, torn = reads + 1, stale + (number < least), torn + (held % 3 != 0)
print(json.dumps({"reads": reads, "stale": stale, "torn": torn}))
"""


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    imported = bench.cell("import", measure_import)
    print(
        f"\nimport of open_bank: {imported['import_seconds']:.2f} s ({imported['import_cpu_seconds']:.2f} of the "
        f"processor; target {IMPORT_TARGET_S} s), heavy packages loaded: {imported['heavy']}"
    )
    found = bench.cell("retrieve", partial(_in_folder, measure_retrieve))
    print(f"{ENTRIES} entries: a query {found['retrieve_ms']:.2f} ms (target {RETRIEVE_TARGET_MS:.0f} ms)")
    read = bench.cell("readers", partial(_in_folder, measure_readers))
    print(
        f"{READERS} readers beside a writer: {read['revisions']} revisions, {read['reads']} reads, of which "
        f"{read['stale']} stale and {read['torn']} of half a revision (target 0)"
    )
    toys = [bench.cell(f"toy-{seed}", partial(_in_folder, partial(improve, seed=seed))) for seed in SEEDS]
    for name in ("start", "judged", "plain"):
        values = [toy[name] for toy in toys]
        harmful = f", harmful entries {[toy[f'{name}_harmful'] for toy in toys]}" if name != "start" else ""
        print(f"toy agent, {name}: {fmean(values):.3f} (worst {min(values):.3f}){harmful}")
    print(f"target of judged lessons: {TOY_TARGET}, none harmful")


def measure_import() -> BenchResult:
    """Seconds of an import in a process of its own."""
    lines = [
        subprocess.run([sys.executable, "-P", "-c", IMPORT], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(IMPORTS)
    ]
    seconds, spent, heavy = zip(*lines, strict=True)
    return {
        "import_seconds": median(map(float, seconds)),
        "import_cpu_seconds": median(map(float, spent)),
        "heavy": max(map(int, heavy)),
    }


def measure_retrieve(folder: Path) -> BenchResult:
    """Milliseconds of a query among many entries."""
    bank, draws = coevo.open_bank(folder / "bank"), generator(key(0, "bank alone"))
    words = [f"word{number}" for number in range(3000)]
    texts = [" ".join(draws.choice(words, 12)) for _ in range(ENTRIES + QUESTIONS)]
    bank.add([f"{text} n{number}" for number, text in enumerate(texts[:ENTRIES])])
    spent = []
    for text in texts[ENTRIES:]:
        begin = time.perf_counter()
        bank.retrieve(text)
        spent.append(1000 * (time.perf_counter() - begin))
    return {"entries": len(bank.entries()), "retrieve_ms": median(spent), "worst_ms": max(spent)}


def measure_readers(folder: Path, seconds: float = SECONDS) -> BenchResult:
    """Processes that read a bank while this one changes it: what they see after a change has returned."""
    bank, announced, end = coevo.open_bank(folder / "bank"), folder / "announced", folder / "end"
    write_atomically(announced, "0")
    command = [sys.executable, "-P", "-c", READER, str(folder / "bank"), str(announced), str(end)]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(READERS)]
    try:
        for reader in readers:
            assert reader.stdout is not None
            reader.stdout.readline()  # it reads from now on
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            number = bank.revision.number
            bank.add([f"lesson {number} {part}" for part in ("a", "b", "c")])
            write_atomically(announced, str(bank.revision.number))
        end.touch()
        found = [json.loads(reader.communicate(timeout=60)[0]) for reader in readers]
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
    totals = {name: sum(each[name] for each in found) for name in ("reads", "stale", "torn")}
    return {"readers": READERS, "revisions": bank.revision.number, **totals}


def _in_folder(measure: Callable[[Path], BenchResult]) -> BenchResult:
    with TemporaryDirectory() as folder:
        return measure(Path(folder))
