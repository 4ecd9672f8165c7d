"""A small run in its own process, killed with SIGKILL at a named place.

    python tests/support/lineage_driver.py WORKSPACE REVISIONS [module:Name.attr@n | git:subcommand@n]

It dies when the function (or the git command) is entered for the n-th time, with ``+`` after n when it has returned.
Each revision is made from what the one before it left in the work tree and in the bank, so that anything which recovery
misses shows in the state of all later ones.
"""

import functools
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2])]

from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.git import Git
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import RunPaths

TABLES = ("entries", "stats")


class Shelf:
    """A bank of two tables in files, ``<path>/<table>/<version>.json``: the highest version is the current one."""

    def __init__(self, path):
        self.path = path
        for table in TABLES:
            (path / table).mkdir(parents=True, exist_ok=True)
            if not self._numbers(table):
                self.write(table, {})

    def read(self, table):
        return json.loads(self._file(table, self.versions()[table]).read_text())

    def write(self, table, rows):
        version = max(self._numbers(table), default=0) + 1
        write_atomically(self._file(table, version), json.dumps(rows, sort_keys=True))

    def versions(self):
        return {table: max(self._numbers(table)) for table in TABLES}

    def hashes(self):
        return {
            table: hashlib.sha256(self._file(table, version).read_bytes()).hexdigest()
            for table, version in self.versions().items()
        }

    def restore(self, versions, hashes):
        touched = [table for table, content in self.hashes().items() if hashes[table] != content]
        for table in touched:
            self.write(table, json.loads(self._file(table, versions[table]).read_text()))
        return touched

    def _file(self, table, version):
        return self.path / table / f"{version}.json"

    def _numbers(self, table):
        return [int(file.stem) for file in (self.path / table).glob("[0-9]*.json")]


def run_in(workspace):
    return RunPaths(Path(workspace) / "runs" / "first")


def lineage_in(workspace):
    return Lineage.open(run_in(workspace).lineage, Path(workspace) / "cache")


def play(workspace, revisions):
    """Recover the run, then go on until it has this many revisions; what recovery mended."""
    run = run_in(workspace)
    run.root.mkdir(parents=True, exist_ok=True)
    with writer_lock(run), lineage_in(workspace) as lineage:
        if lineage.history.head() is None:
            shutil.rmtree(run.bank, ignore_errors=True)
        bank = Shelf(run.bank)
        recovery = lineage.recover(bank)
        run.clear_staging()
        publish(run, lineage)
        while (head := lineage.history.head()) is None or head.revision < revisions - 1:
            revise(run, lineage, bank, head)
            publish(run, lineage)
    return recovery


def revise(run, lineage, bank, head):
    number = 0 if head is None else head.revision + 1
    staged = {name: stage(run, lineage, name, number) for name in ("policy", "optimizer", "episodes")}
    bank.write("entries", {**bank.read("entries"), f"lesson {number}": "go left"})
    bank.write("stats", {"visits": bank.read("stats").get("visits", 0) + number + 1})
    state = {
        "iteration": number,
        "config": {"seed": 1, "env": {"type": "Häuser"}},
        "config_hash": "c",
        "code": "d",
        "tables": bank.hashes(),
        "metrics": {"success": number / 3},
        "panels": {},
        "accepted_change": [],
    }
    return lineage.commit(staged, state, {"run": run.name, "tables": bank.versions(), "metrics": {"seconds": 0.5}})


def stage(run, lineage, name, number):
    """The next weights: a hash of the present ones."""
    present = lineage.artifacts.path(name) / "weights.bin"
    seed = present.read_bytes() if present.exists() else name.encode()
    directory = run.staging / name
    (directory / "größe").mkdir(parents=True)
    (directory / "weights.bin").write_bytes(hashlib.sha256(seed + bytes([number])).digest() * 100)
    (directory / "größe" / "config 1.json").write_text(f'{{"revision": {number}}}')
    return directory


def publish(run, lineage):
    cursor = Cursor(run.published)
    ledger = run.root / "ledger.json"
    for manifest in cursor.unpublished(lineage):
        known = json.loads(ledger.read_text()) if ledger.exists() else {}
        write_atomically(ledger, json.dumps({**known, str(manifest.revision): manifest.state}))
        cursor.advance(manifest.revision)


def states(workspace):
    return [manifest.state for manifest in lineage_in(workspace).history.log()]


def kill_at(target):
    place, _, count = target.partition("@")
    module, _, path = place.partition(":")
    left = [int(count.rstrip("+"))]
    if module == "git":
        owner, name, counts = Git, "__call__", lambda arguments: arguments[1] == path
    else:
        *parents, name = path.split(".")
        owner, counts = functools.reduce(getattr, parents, importlib.import_module(module)), lambda arguments: True
    original = getattr(owner, name)

    @functools.wraps(original)
    def deadly(*arguments, **named):
        left[0] -= counts(arguments)
        fatal = left[0] == 0 and counts(arguments)
        if fatal and not count.endswith("+"):
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **named)
        if fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, deadly)


if __name__ == "__main__":
    # Shelf is patched by name too: the name must lead to the class in use.
    sys.modules["lineage_driver"] = sys.modules["__main__"]
    if len(sys.argv) > 3:
        kill_at(sys.argv[3])
    play(sys.argv[1], int(sys.argv[2]))
