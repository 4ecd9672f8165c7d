"""Progress of transfers on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from flows.output import console


class Bars:
    """One bar of files for each transfer, with the bytes so far."""

    def __init__(self, progress: Progress, run: str) -> None:
        self._progress = progress
        self._run = run
        self._task: TaskID | None = None
        self._size = 0

    def begin(self, doing: str, files: int) -> None:
        """So many files follow."""
        self._task = self._progress.add_task(f"{self._run}: {doing}", total=files, moved="") if files else None
        self._size = 0

    def advance(self, files: int, size: int) -> None:
        """So many files are done, so many bytes moved."""
        self._size += size
        if self._task is not None:
            self._progress.update(self._task, advance=files, moved=decimal(self._size))


@contextmanager
def bars(run: str) -> Iterator[Bars]:
    """A meter on standard error, which shows nothing where that is no terminal."""
    moved = TextColumn("files {task.fields[moved]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), moved)
    shown = console(stderr=True)
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as progress:
        yield Bars(progress, run)
