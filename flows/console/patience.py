"""A line about where a command is, if a step takes long: code of the user's that hangs says nothing itself."""

import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from traceback import walk_stack
from types import FrameType

import typer

SECONDS = 30.0
GROUPS = "coevo."
"""Beginning of the groups of entry points by which packages add parts to coevo."""


@contextmanager
def patience(step: str, seconds: float = SECONDS) -> Iterator[None]:
    """Print the line of the user's code that the main thread is in, each time the block has taken so many more seconds.

    Frames of coevo and of libraries are left out: they tell a user nothing.

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
        typer.echo(f"{step} has taken {passed:g} s{_place()}; Ctrl-C ends it", err=True)


def _place() -> str:
    """File, line and function of the innermost frame of the user's code in the main thread; empty without one."""
    frame = sys._current_frames()[threading.main_thread().ident or 0]  # no public function returns another thread's
    for found, line in walk_stack(frame):
        if _is_of_user(found):
            return f", and is at {found.f_code.co_filename}, line {line}, in {found.f_code.co_name}"
    return ""


def _is_of_user(frame: FrameType) -> bool:
    """Return True for code that is neither Python's, nor coevo's, nor a library's, or that adds parts to coevo."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if package in ("coevo", "__main__") or package in sys.stdlib_module_names:
        return False
    libraries = tuple(map(sysconfig.get_path, ("purelib", "platlib")))
    return not frame.f_code.co_filename.startswith(libraries) or package in _added()


def _added() -> set[str]:
    """Packages whose entry points add parts to coevo."""
    groups = [name for name in entry_points().groups if name.startswith(GROUPS)]
    return {each.module.partition(".")[0] for name in groups for each in entry_points(group=name)}
