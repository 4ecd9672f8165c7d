"""Tests of one mutant, run in a copy of the project."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.mutation.sample import Mutant, mutated
from coevo.utilities.errors import CoevoError

LEFT_OUT = (".git", ".venv*", "workspace", "build", "dist", ".hypothesis")
OPTIONS = ("-x", "-m", "not full and not soak", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--timeout=60")
NO_TESTS = 5
"""Exit status of pytest where nothing was selected."""


@dataclass(frozen=True)
class MutantTrial:
    """A copy of the project, and a process beside it that runs tests."""

    root: Path
    pytest: "subprocess.Popen[str]"
    sound: set[tuple[str, ...]] = field(default_factory=set)
    """Tests that are known to pass without any change."""

    def notices(self, mutant: Mutant) -> bool:
        """Return True if a test of the module fails, or does not end, with the change.

        Raises:
            CoevoError: the test fails without the change as well.
        """
        with _changed(self.root, mutant):
            failed = next((tests for tests in mirrored(self.root, mutant.path) if self._fails(tests)), None)
        if failed and failed not in self.sound and self._fails(failed):
            raise CoevoError(f"{failed[0]} fails without any change: mend that first")
        self.sound.update({failed} if failed else ())
        return failed is not None

    def _fails(self, tests: tuple[str, ...]) -> bool:
        assert self.pytest.stdin and self.pytest.stdout
        self.pytest.stdin.write(json.dumps([*OPTIONS, *tests]) + "\n")
        self.pytest.stdin.flush()
        answer = self.pytest.stdout.readline()
        if not answer:
            raise CoevoError(f"the process that runs {tests[0]} has ended: see what it wrote above")
        return int(answer) not in {0, NO_TESTS}


@contextmanager
def opened(project: Path) -> Iterator[MutantTrial]:
    """A copy of the project to try mutants in."""
    with TemporaryDirectory() as folder:
        root = Path(folder, "project")
        shutil.copytree(project, root, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        with _pytest(root) as process:
            yield MutantTrial(root, process)


def mirrored(root: Path, path: str) -> list[tuple[str, ...]]:
    """Tests of a module, narrow before wide: its file, its folder, and the files that stand directly in its room."""
    module = Path("tests", path)
    room = root / "tests" / module.parts[1]
    wide = sorted(file.relative_to(root) for file in room.glob("test_*.py"))
    steps = [[module.with_name(f"test_{module.name}")], [module.parent], wide if root / module.parent != room else []]
    return [tuple(map(str, step)) for step in steps if step and all((root / tests).exists() for tests in step)]


@contextmanager
def _changed(root: Path, mutant: Mutant) -> Iterator[None]:
    path = root / mutant.path
    before, times = path.read_bytes(), path.stat()
    path.write_text(mutated(root, mutant), encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as the compiled file has it


@contextmanager
def _pytest(root: Path) -> Iterator[subprocess.Popen[str]]:
    line = [sys.executable, "-P", "-m", "benchmarks.mutation.forked"]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(root)}
    pipe = subprocess.PIPE
    with subprocess.Popen(line, cwd=root, env=environment, text=True, stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        if not process.stdout.readline():
            raise CoevoError(f"{' '.join(line[1:])} has ended: see what it wrote above")
        yield process
        process.terminate()
