"""Progress of a run: one line per revision, and the current stage."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from rich.console import Console
from rich.status import Status

from coevo.flows.history.cost import stages
from coevo.lineage.revision.manifest import Manifest

COLUMNS = (
    ("rev", 3), ("iter", 4), ("train", 5), ("held-out", 8), ("reward", 6), ("adv sd", 6), ("bank", 4),
    ("+/-", 5), ("rollout", 7), ("update", 6), ("judge", 5), ("rest", 4), ("ETA", 5),
)  # fmt: skip
"""Columns of a row and their widths; a row has 80 characters."""

PAUSE = 15.0
"""Seconds between two reports of a running stage without a terminal."""


class Progress:
    """Reporter that prints rows to a console, with a spinner on a terminal and periodic lines elsewhere."""

    def __init__(self, console: Console, iterations: int, clock: Callable[[], float] = monotonic) -> None:
        self.console = console
        self.iterations = iterations
        self.status: Status | None = None
        self.stage = ""
        self.rows = 0
        self.clock = clock
        self.said = self.started = clock()
        self.first_iteration: int | None = None

    def note(self, text: str) -> None:
        """Show the current stage; without a terminal, print a line at its start and every ``PAUSE`` seconds."""
        if not self.console.is_terminal:
            self._log(text)
            return
        if self.status is None:
            self.status = self.console.status(text)
            self.status.start()
        self.status.update(text)

    def _log(self, text: str) -> None:
        stage, _, _ = text.partition(":")
        if stage == self.stage and self.clock() - self.said < PAUSE:
            return
        self.console.print(f"{stage} ..." if stage != self.stage else text, markup=False, soft_wrap=True)
        self.stage, self.said = stage, self.clock()

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.console.print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)

    def close(self) -> None:
        """Stop the spinner."""
        if self.status is not None:
            self.status.stop()
            self.status = None

    def revision(self, manifest: Manifest) -> None:
        """Print the row of a revision."""
        if self.rows % 20 == 0:
            self.console.print(_row([name for name, _ in COLUMNS]), style="bold", soft_wrap=True)
        self.rows += 1
        self.console.print(_row(self._cells(manifest)), soft_wrap=True)

    def _cells(self, manifest: Manifest) -> list[str]:
        metrics, seconds = manifest.metrics, stages(manifest)
        wall = manifest.rates["cost/seconds/wall"]
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
