"""Limits that stop a run before its last iteration, always between two revisions, so that no episode is lost."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from coevo.tasks.session import Session

GIB = 2**30
RESERVE = GIB
"""Bytes that a run which nobody watches leaves free."""


def free_bytes(path: Path) -> int:
    """Free bytes on the disk of a directory."""
    return shutil.disk_usage(path).free


@dataclass
class Limit:
    """Bounds of one stretch of a run; its clock starts when it is made.

    Attributes:
        iterations: most that are played; None for any number.
        hours: no revision begins that, taking as long as the longest so far, would end later. The first one always
            begins: else a run with long revisions would never move. None for any time.
        reserve: bytes that stay free after a revision that takes as much as the largest so far; 0 for no forecast.
        reason: why no further revision began, in one line; None as long as one may.
    """

    iterations: int | None = None
    hours: float | None = None
    reserve: int = 0
    clock: Callable[[], float] = monotonic
    free: Callable[[Path], int] = free_bytes
    reason: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._first: int | None = None
        self._last: tuple[float, int] | None = None
        self._longest, self._largest = 0.0, 0

    def allows(self, session: Session) -> bool:
        """Return True if the next iteration may begin; within a revision it always may."""
        if session.waiting:
            self.reason = f"revision {session.pending.revision - 1} waits for approval"
        elif session.iteration == session.frozen_at:
            self.reason = self.reached(session.stores.paths.root, session.iteration)
        return self.reason is None

    def reached(self, path: Path, iteration: int) -> str | None:
        """The bound that is reached after so many iterations of the run; call it between two revisions."""
        now, free = self.clock(), self.free(path)
        if self._first is None:
            self._first = iteration
        if self._last is not None:
            self._longest = max(self._longest, now - self._last[0])
            self._largest = max(self._largest, self._last[1] - free)
        self._last = now, free
        return self._of_iterations(iteration - self._first) or self._of_hours(now) or self._of_disk(path, free)

    def _of_iterations(self, done: int) -> str | None:
        over = self.iterations is not None and done >= self.iterations
        return f"{done} iterations are done, {self.iterations} were asked for" if over else None

    def _of_hours(self, now: float) -> str | None:
        spent = now - self._began
        if self.hours is None or self._longest == 0.0 or spent + self._longest <= self.hours * 3600:
            return None
        taken, longest = spent / 3600, self._longest / 60
        return f"{taken:.2f} of {self.hours:g} hours are over, and a revision took up to {longest:.1f} minutes"

    def _of_disk(self, path: Path, free: int) -> str | None:
        needed = self.reserve + self._largest
        if self.reserve == 0 or free >= needed:
            return None
        return (
            f"{path} has {free / GIB:.2f} GiB free, and {needed / GIB:.2f} are needed: {self.reserve / GIB:.2f} stay "
            f"free, a revision took up to {self._largest / GIB:.2f}; see `coevo gc`"
        )
