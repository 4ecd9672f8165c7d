"""A line about where a command is, if a step takes long: code of the user's that hangs says nothing itself."""

import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

SECONDS = 30.0


@contextmanager
def patience(step: str, seconds: float = SECONDS) -> Iterator[None]:
    """Print where the main thread is, each time that the block has taken so many more seconds.

    Args:
        step: name of the block.
        seconds: time between two lines.
    """
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(step, seconds, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(step: str, seconds: float, over: threading.Event) -> None:
    passed = 0.0
    while not over.wait(seconds):
        passed += seconds
        typer.echo(f"{step} has taken {passed:g} s, and is at {_place()}; Ctrl-C ends it", err=True)


def _place() -> str:
    """File, line and function of the main thread's innermost frame."""
    frame = sys._current_frames()[threading.main_thread().ident or 0]  # no public function returns another thread's
    last = traceback.extract_stack(frame)[-1]
    return f"{last.filename}, line {last.lineno}, in {last.name}"
