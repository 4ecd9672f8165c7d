"""Steps of a command before its result: one line each, since a silent program looks like one that hangs.

It has few imports of its own, so that it can report those of everything else.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, TextIO

from coevo.tasks.publish.reporter import in_stage, reporting_to

if TYPE_CHECKING:
    from coevo.lineage.revision.manifest import Manifest

SILENCE_S = 1.5
"""Seconds until a command that has not reported a step says that it starts."""
TERMINAL_INTERVAL_S = 10.0
"""Seconds between two reports of the current stage on a terminal."""
POLL_INTERVAL_S = 0.5
COMPLETION = "_COEVO_COMPLETE"
"""Variable that a shell sets when it asks for the words that may follow."""
ON_OUTPUT = ("run", "resume")
"""Commands whose standard output is progress for people: their steps stand there, those of others on standard error."""
LIBRARIES = {
    "deepspeed": "DeepSpeed",
    "dvc": "DVC",
    "great_expectations": "Great Expectations",
    "lancedb": "LanceDB",
    "minigrid": "Minigrid",
    "mlflow": "MLflow",
    "peft": "PEFT",
    "prefect": "Prefect",
    "sentence_transformers": "Sentence Transformers",
    "sklearn": "scikit-learn",
    "textworld": "TextWorld",
    "torch": "PyTorch",
    "transformers": "Transformers",
    "vllm": "vLLM",
}
"""Names of the libraries whose import takes longest, by module."""


class StageClock:
    """Names and times of stages, of which nested ones take turns.

    Attributes:
        stage: the current one, empty between two.
        text: the stage, or ``stage: how far it is``.
        named: stages that were current so far.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.stage = self.text = ""
        self.clock = clock
        self.said = clock()
        self._began: dict[str, float] = {}
        self.named: set[str] = set()

    def enter(self, text: str) -> bool:
        """Take up a note of a reporter; return True for a stage that was never current before."""
        self.stage, self.text = text.partition(":")[0], text
        if not text:
            self._began.clear()  # nothing runs now
            return False
        if self.stage not in self._began:
            self._began[self.stage] = self.said = self.clock()
        is_new = self.stage not in self.named
        self.named.add(self.stage)
        return is_new

    def elapsed(self) -> float:
        """Seconds since the current stage began."""
        return self.clock() - self._began.get(self.stage, self.clock())

    def is_due(self, interval: float) -> bool:
        """Return True, once, if the current stage has not been reported for so many seconds."""
        if not self.stage or self.clock() - self.said < interval:
            return False
        self.said = self.clock()
        return True

    def lasting(self) -> str:
        """The text, with the time so far."""
        seconds = int(self.elapsed())
        spent = f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
        return f"{self.text}{': ' if self.text == self.stage else ', '}{spent} so far"


class Steps:
    """Reporter of a command: a line per step, and on a terminal a line every ten seconds while one lasts.

    It has a descriptor of its own, since the bank filters standard error while Lance reads.

    Args:
        command: the command, for the first line of one that has no step yet.
        stream: stream to print to.
    """

    def __init__(self, command: str, stream: TextIO) -> None:
        self._command = command
        self._stream = os.fdopen(os.dup(stream.fileno()), "w", encoding=stream.encoding, errors="replace")
        self.stages = StageClock()
        self._lock = threading.RLock()
        self._ended, self._began = threading.Event(), False
        self._watcher = threading.Thread(target=self._watch, name="steps", daemon=True)
        self._watcher.start()

    def note(self, text: str) -> None:
        """Print the name of a step that begins."""
        with self._lock:
            self._began = True
            if self.stages.enter(text):
                self._say(f"{self.stages.stage} ...")

    def warn(self, text: str) -> None:
        """Print a warning."""
        from coevo.records.inert import shown

        self._say(f"warning: {shown(text)}")

    def revision(self, manifest: "Manifest") -> None:
        """Ignore a revision: a command that makes some has a reporter with a table."""

    def close(self) -> None:
        """End the reports."""
        self._ended.set()
        self._watcher.join()
        with suppress(OSError):
            self._stream.close()

    def _watch(self) -> None:
        if not self._ended.wait(SILENCE_S):
            with self._lock:
                if not self._began:
                    self._say(f"{self._command} starts ...")
        while not self._ended.wait(POLL_INTERVAL_S):
            with self._lock:
                if self._stream.isatty() and self.stages.is_due(TERMINAL_INTERVAL_S):
                    self._say(self.stages.lasting())

    def _say(self, line: str) -> None:
        with suppress(OSError, ValueError):  # closed, or without a reader: the command itself finds out
            self._stream.write(f"{line}\n")
            self._stream.flush()


class _ReportedImports(MetaPathFinder):
    """Finder that makes the import of a large library a step."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find one of ``LIBRARIES``; its loader reports the step when the module is run, not when it is looked up."""
        found = PathFinder.find_spec(name, path, target) if name in LIBRARIES else None
        if found is not None and found.loader is not None:
            _report_import(found.loader, f"loads {LIBRARIES[name]}")
        return found


def _report_import(loader: Loader, step: str) -> None:
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        with in_stage(step):
            run(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]


@contextmanager
def steps_shown(arguments: Sequence[str]) -> Iterator[None]:
    """Report the steps of the command with these arguments inside the block."""
    if COMPLETION in os.environ:
        yield  # a shell asks for words, and shows what else is written
        return
    command = _command(arguments)
    is_progress = command in ON_OUTPUT and "--json" not in arguments
    steps = Steps(f"coevo {command}".rstrip(), sys.stdout if is_progress else sys.stderr)
    finder = _ReportedImports()
    sys.meta_path.insert(0, finder)
    try:
        with reporting_to(steps):
            yield
    finally:
        sys.meta_path.remove(finder)
        steps.close()


def _command(arguments: Sequence[str]) -> str:
    """Name of the command among its arguments; empty if there is none."""
    rest = iter(arguments)
    for word in rest:
        if word == "--workspace":
            next(rest, None)
        elif not word.startswith("-"):
            return word if word.isalpha() else ""
    return ""
