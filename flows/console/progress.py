"""Progress of a run: one line per revision, and the current stage."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from threading import Event, RLock, Thread
from time import monotonic

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from coevo.flows.console.interrupt import at_once
from coevo.flows.console.steps import TERMINAL_INTERVAL_S, StageClock, Steps
from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import stages, wall_seconds
from coevo.tasks.publish.reporter import reporter

COLUMNS = (
    ("rev", 3), ("iter", 4), ("train", 5), ("held-out", 8), ("reward", 6), ("adv sd", 6), ("bank", 4),
    ("+/-", 5), ("rollout", 7), ("update", 6), ("judge", 5), ("rest", 4), ("ETA", 5),
)  # fmt: skip
"""Columns of a row and their widths; a row has 80 characters."""

REPORT_INTERVAL_S, REVISION_REPORT_INTERVAL_S = 15.0, 60.0
"""Seconds between two reports of a running stage without a terminal; the second, for stages of a revision."""
SHOW_CURSOR = b"\x1b[?25h"
OF_REVISION = re.compile(r"r\d+ ")
"""Beginning of the name of a stage of a revision."""


class Progress:
    """Reporter that prints rows to a console, with a spinner on a terminal and periodic lines elsewhere.

    A stage is named once, however often one within it takes turns with it. A revision has many stages, so one of them
    is named only by the spinner, or elsewhere if it takes long.
    """

    def __init__(self, console: Console, iterations: int, clock: Callable[[], float] = monotonic) -> None:
        self.console = console
        self.iterations = iterations
        self.status: Status | None = None
        self.stages = StageClock(clock)
        self.rows = 0
        self.is_silent = False
        self.clock = clock
        self.started = clock()
        self.first_iteration: int | None = None
        self.closed, self.lock = Event(), RLock()
        self.watcher: Thread | None = None
        self.failure: BaseException | None = None

    def note(self, text: str) -> None:
        """Show the current stage; without a terminal, print a line every now and then."""
        with self.lock:
            self._check()
            if self.console.quiet:
                return  # a spinner would swallow what others print
            begins = self.stages.enter(text)
            if begins and not (self.is_silent or self._is_of_revision()):
                self.console.print(f"{self.stages.stage} ...", markup=False, soft_wrap=True)
            if self.console.is_terminal:
                self._spin(text)
            elif not begins:
                self.remind()
            if text and self.watcher is None:
                self.watcher = Thread(target=self._watch, name="progress", daemon=True)
                self.watcher.start()

    def _spin(self, text: str) -> None:
        if self.status is None:
            self.status = self.console.status(escape(text))
            self.status.start()
        self.status.update(escape(text))

    def _is_of_revision(self) -> bool:
        return OF_REVISION.match(self.stages.stage) is not None

    def remind(self) -> None:
        """Show how far the current stage is: beside the spinner, or as a line if it was not named for long."""
        with self.lock:
            text, elapsed = self.stages.text, self.stages.elapsed()
            if self.status is not None:
                self.status.update(escape(self.stages.lasting() if text and elapsed >= TERMINAL_INTERVAL_S else text))
                return
            is_counted = not self._is_of_revision() and text != self.stages.stage
            plain = self.console.file.isatty()  # a terminal without escape codes has no spinner
            if self.stages.is_due(
                TERMINAL_INTERVAL_S if plain else REPORT_INTERVAL_S if is_counted else REVISION_REPORT_INTERVAL_S
            ):
                so_far = f"{': ' if text == self.stages.stage else ', '}{int(elapsed) // 60} min so far"
                line = self.stages.lasting() if plain else text if is_counted else f"{text}{so_far}"
                self.console.print(line, markup=False, soft_wrap=True)

    def _watch(self) -> None:
        """Remind of a stage that reports nothing itself, such as an update."""
        try:
            while not self.closed.wait(1.0):
                self.remind()
        except (OSError, SystemExit) as error:  # rich ends a thread whose reader is gone
            self.failure = error

    def _check(self) -> None:
        """Raise what ended the watcher, in a thread that the run waits for."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.console.print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)

    def close(self) -> None:
        """Stop the spinner, or the watcher."""
        self.closed.set()
        if self.watcher is not None:
            self.watcher.join()
        if self.status is not None:
            self.status.stop()
            self.status = None

    def show_cursor(self) -> None:
        """Show the cursor that a spinner hides, without waiting for a lock: the process ends at once."""
        if self.status is not None:
            with suppress(OSError, ValueError):  # closed, or without a reader
                os.write(self.console.file.fileno(), SHOW_CURSOR)

    def revision(self, manifest: Manifest) -> None:
        """Print the row of a revision."""
        self._check()
        if self.rows % 20 == 0:
            self.console.print(_row([name for name, _ in COLUMNS]), style="bold", soft_wrap=True)
        self.rows += 1
        self.console.print(_row(self._cells(manifest)), soft_wrap=True)

    def _cells(self, manifest: Manifest) -> list[str]:
        metrics, seconds = manifest.metrics, stages(manifest)
        wall = wall_seconds(manifest)
        panel = manifest.state["config"]["evaluation"]["panels"][0]
        main = {name: seconds.get(name) for name in ("rollout", "update", "judge")}
        return [
            str(manifest.revision),
            str(manifest.iteration),
            _number(metrics.get("agent/success/train")),
            _number(metrics.get(f"agent/success/{panel}")),
            _number(metrics.get("agent/reward/train")),
            _number(metrics.get("policy/advantage/std")),
            _number(metrics.get("bank/size"), 0),
            _admitted(metrics),
            *(_seconds(value) for value in main.values()),
            _seconds(wall - sum(value or 0.0 for value in main.values())),
            self._eta(manifest.iteration),
        ]

    def _eta(self, iteration: int) -> str:
        if self.first_iteration is None:
            self.first_iteration, self.started = iteration, self.clock()
            return ""
        pace = (self.clock() - self.started) / max(1, iteration - self.first_iteration)
        left = pace * (self.iterations - iteration)
        return f"{int(left) // 60}:{int(left) % 60:02d}"


@contextmanager
def shown(console: Console, iterations: int, is_aside: bool = False) -> Iterator[Progress]:
    """Progress on a console inside the block; at an immediate exit, too, the terminal has its cursor.

    Steps that the command has named before are not named again. ``is_aside`` names steps only where the command does: a
    program that calls it expects a result or an error.
    """
    with closing(Progress(console, iterations)) as progress, at_once(progress.show_cursor):
        before = reporter()
        if isinstance(before, Steps):
            progress.stages.named |= before.stages.named
        progress.is_silent = is_aside and not isinstance(before, Steps)
        yield progress


def _row(cells: Sequence[str]) -> str:
    return " ".join(cell.rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True))


def _seconds(value: float | None) -> str:
    return _number(value, 1 if value is None or value < 100 else 0)


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _admitted(metrics: Mapping[str, float]) -> str:
    if "bank/admitted" not in metrics:
        return ""
    return f"{metrics['bank/admitted']:.0f}/{metrics['bank/rejected']:.0f}"
