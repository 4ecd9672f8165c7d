"""Past one machine: a bank on S3 beside one in a directory, readers beside a writer, and a run of many revisions.

S3 is moto's server, a mock in a process of this machine: its seconds say what the bank asks of a server, not what a
server of a provider takes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from unittest.mock import patch

import psutil

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.command import COMMAND
from benchmarks.running import fsck_time, large_run
from benchmarks.running.durability import snapshot
from coevo.configs.load.load import load_recipe
from coevo.lineage.atomic_files import write_atomically
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.bank_address import BankAddress, BankPath, bank_path
from coevo.memory.bank.change import BankChange
from coevo.memory.bank.lance_files import manifest_name
from coevo.records.entry import Entry
from coevo.utilities.errors import CoevoError

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
CHANGED, REPEATS, REQUESTS = 20, 5, 8
READERS, WRITES = ((64, 10_000), (4, 1_000_000)), 10
"""Processes that read a bank of so many entries, and what is written meanwhile."""
REVISIONS = (200, 1_000)
COMMANDS = ("log", "report", "fsck", "gc")
BUCKET = "bench"
KEYS = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
READER = """
import json, sys
from pathlib import Path
from coevo.memory.bank.bank import StoredBank
address, announced, end = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
reads = stale = 0
print(flush=True)
while reads < 5 or not end.exists():
    versions, hashes, size = json.loads(announced.read_text())
    found = StoredBank(address).at(versions, hashes)
    reads, stale = reads + 1, stale + (found.size() != size or found.hashes()["entries"] != hashes["entries"])
print(json.dumps({"reads": reads, "stale": stale}))
"""


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    print("\na bank on S3 beside one in a directory: snapshot, rollback [s]")
    for size in SIZES:
        found = bench.cell(f"bank-{size}", partial(measure_bank, size))
        for name in ("snapshot", "rollback"):
            here, there = (found[where][f"{name}_seconds"] for where in ("directory", "s3"))
            asked, each = found["s3"][f"{name}_requests"], found["s3"]["request_seconds"]
            times = f"{there / here:.1f} times, {(there - asked * each) / here:.1f} without its {asked:.0f} requests"
            print(f"  {size:7} entries, {name}: {here:.3f}, on S3 {there:.3f} ({times})")
    for readers, entries in READERS:
        read = bench.cell(f"readers-{entries}", partial(measure_readers, readers, entries))
        print(f"{readers} readers of {entries} entries beside a writer on S3: {read['reads']} reads, ", end="")
        print(f"{read['stale']} stale (target 0)")
    cells = (bench.cell(f"revisions-{count}", partial(measure_revisions, bench, count)) for count in REVISIONS)
    few, many = cells
    print(f"{REVISIONS[1]} revisions against {REVISIONS[0]}: ", end="")
    print(", ".join(f"{name} {many[name] / few[name]:.2f} times" for name in (*COMMANDS, "commit_seconds")))
    print(f"  bytes of a revision {many['revision_bytes'] / few['revision_bytes']:.2f} times, ", end="")
    print(f"open files {few['open_files']} and {many['open_files']}")


def measure_bank(entries: int) -> BenchResult:
    """Medians of a snapshot of a small change and of its rollback, in a directory and on S3, in turns."""
    lessons = [large_run.entry(number, 1) for number in range(entries)]
    with TemporaryDirectory() as folder, s3(Path(folder)) as log:
        addresses = {"directory": str(Path(folder) / "bank"), "s3": f"s3://{BUCKET}/bank"}
        banks = {where: _TimedBank(address, lessons, log) for where, address in addresses.items()}
        for number in range(REPEATS):
            for bank in banks.values():
                bank.change(10 + number)
        return {"entries": entries, **{where: bank.figures() for where, bank in banks.items()}}


class _TimedBank:
    """A bank, with seconds and requests of what is done to it."""

    def __init__(self, address: str, lessons: Sequence[Entry], log: Path) -> None:
        self._bank, self._lessons, self._log = Bank(address), lessons, log
        self._first = _seconds(partial(self._bank.merge, BankChange(tuple(lessons))))
        self._state, self._path = (self._bank.versions(), self._bank.hashes()), bank_path(address)
        self._found: dict[str, list[float]] = {"request_seconds": []}

    def change(self, revision: int) -> None:
        """Snapshot of some edited lessons, and its rollback."""
        change = BankChange(large_run.edited(self._lessons[:CHANGED], revision))
        self._timed("snapshot", partial(snapshot, self._bank, change))
        self._timed("rollback", partial(self._bank.restore, *self._state))
        self._found["request_seconds"].append(_request_seconds(self._path, self._log))

    def figures(self) -> BenchResult:
        """Medians."""
        return {"first_seconds": self._first, **{name: median(values) for name, values in self._found.items()}}

    def _timed(self, name: str, what: Callable[[], object]) -> None:
        before = _requests(self._log)
        self._found.setdefault(f"{name}_seconds", []).append(_seconds(what))
        self._found.setdefault(f"{name}_requests", []).append(_requests(self._log) - before)


def _request_seconds(bank: BankPath, log: Path) -> float:
    """Seconds of a bare request to S3, which fetches a small file; 0 for a directory."""
    if not isinstance(bank, BankAddress):
        return 0.0
    before = _requests(log)
    with TemporaryDirectory() as folder:
        fetched = partial((bank / "entries.lance" / manifest_name(1)).copy_to, Path(folder) / "manifest")
        seconds = sum(_seconds(fetched) for _ in range(REQUESTS))
    return seconds / (_requests(log) - before)


def _requests(log: Path) -> int:
    return log.read_text(encoding="utf-8", errors="replace").count('HTTP/1.1"')


def measure_readers(count: int, entries: int) -> BenchResult:
    """Processes that read revisions of a bank on S3 as they are published, while this one writes further ones."""
    with TemporaryDirectory() as folder, s3(Path(folder)):
        address, announced, end = f"s3://{BUCKET}/bank", Path(folder) / "announced", Path(folder) / "end"
        bank = Bank(address)
        bank.merge(BankChange(tuple(large_run.entry(number, 1) for number in range(entries))))
        _announce(bank, announced)
        command = [sys.executable, "-P", "-c", READER, address, str(announced), str(end)]
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        try:
            for reader in readers:
                assert reader.stdout is not None
                reader.stdout.readline()  # it reads from now on
            for number in range(WRITES):
                bank.merge(BankChange((large_run.entry(entries + number, 2),)))
                _announce(bank, announced)
            end.touch()
            found = [json.loads(reader.communicate(timeout=1800)[0]) for reader in readers]
        finally:
            for reader in readers:
                reader.kill()
                reader.wait()
    totals = {name: sum(each[name] for each in found) for name in ("reads", "stale")}
    return {"readers": count, "entries": entries, "writes": WRITES, **totals}


def _announce(bank: Bank, path: Path) -> None:
    write_atomically(path, json.dumps([bank.versions(), bank.hashes(), bank.size()]))


def measure_revisions(bench: Bench, count: int) -> BenchResult:
    """A run of many revisions: seconds of its last commits and of reading commands, memory, open files and bytes.

    All seconds are those of processors.
    """
    shutil.rmtree(bench.workspace.root, ignore_errors=True)
    moments: list[float] = []
    paths = fsck_time.commit_revisions(
        bench, load_recipe(fsck_time.RECIPE, []), count, lambda _: moments.append(sum(os.times()[:4]))
    )
    steps = [after - before for before, after in pairwise(moments)][-20:]
    process, size = psutil.Process(), sum(file.stat().st_size for file in paths.root.rglob("*") if file.is_file())
    figures: BenchResult = {
        "revisions": count,
        "commit_seconds": median(steps),
        "revision_bytes": size / count,
        "memory_bytes": process.memory_info().rss,
        "open_files": process.num_fds(),
    }
    for name in COMMANDS:
        arguments = (name,) if name in ("fsck", "gc") else (name, paths.name)
        before = fsck_time.cpu_of_children()
        _command(bench, *arguments)
        figures[name] = fsck_time.cpu_of_children() - before
    return figures


def _command(bench: Bench, *arguments: str) -> None:
    """Run a command; ``fsck`` finds that nothing was published, and ends with 1."""
    line = [*COMMAND, *arguments, "--workspace", str(bench.workspace.root)]
    done = subprocess.run(line, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):
        raise CoevoError(f"`coevo {' '.join(arguments)}` ended with exit code {done.returncode}")


@contextmanager
def s3(folder: Path) -> Iterator[Path]:
    """A moto server with a bucket, to which this process and its children are led; its log."""
    import boto3  # type: ignore[import-untyped]

    log = folder / "moto.log"
    with log.open("w") as output:
        line = [sys.executable, "-P", "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        server = subprocess.Popen(line, stdout=output, stderr=subprocess.STDOUT)
    try:
        while not (found := re.search(r"Running on (http://127.0.0.1:\d+)", log.read_text())):
            if server.poll() is not None:
                raise RuntimeError(f"moto did not start: {log.read_text()[-500:]}")
            time.sleep(0.05)
        with patch.dict(os.environ, {**KEYS, "AWS_ENDPOINT_URL": found[1], "AWS_CONFIG_FILE": str(folder / "none")}):
            boto3.client("s3").create_bucket(Bucket=BUCKET)
            yield log
    finally:
        server.kill()
        server.wait()


def _seconds(what: Callable[[], object]) -> float:
    begin = time.perf_counter()
    what()
    return time.perf_counter() - begin
