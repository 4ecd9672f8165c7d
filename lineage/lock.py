"""One writer a run, and one at a time who adds runs or collects what runs no longer need."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from configs.errors import CoevoError

if TYPE_CHECKING:
    from lineage.workspace import RunPaths

PATIENCE = 60.0
"""Seconds to wait for the lock of the runs: making one takes less, collecting in a large workspace may take more."""

_purpose: ContextVar[str | None] = ContextVar("purpose", default=None)


@contextmanager
def holding_for(purpose: str) -> Iterator[None]:
    """What a lock that is taken within is held for: whoever has to wait for it is told."""
    token = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(token)


@contextmanager
def writer_lock(run: "RunPaths") -> Iterator[None]:
    """Hold a run's lock. It ends with the process, whatever ends that; programs started meanwhile do not inherit it.

    Raises:
        CoevoError: another process holds it; names the run and that process.
    """
    note = _note(run)
    lock = FileLock(run.lock, blocking=False, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise CoevoError(f"run {run.name!r} is in use by process {_noted(run)}: wait for it, or stop it") from None
    try:
        note.write_text(" ".join([str(os.getpid()), *_why()]), encoding="utf-8")
        yield
    finally:
        lock.release()


def holder(run: "RunPaths") -> str | None:
    """Id of the process that holds the run's lock, and what for; None for none."""
    return _noted(run) if in_use(run) else None


def _note(run: "RunPaths") -> Path:
    return run.lock.with_suffix(".pid")


def _noted(run: "RunPaths") -> str:
    try:
        return _note(run).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "unknown"


def _why() -> list[str]:
    purpose = _purpose.get()
    return [] if purpose is None else [f"({purpose})"]


def in_use(run: "RunPaths") -> bool:
    """Whether a live process holds the run's lock. Nothing is written, and the lock is asked for an instant only."""
    return held(run.lock)


def held(path: Path) -> bool:
    """The same of the lock of any file."""
    if not path.exists():
        return False
    with path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def if_free(*paths: Path) -> Iterator[bool]:
    """Whether no other process holds one of these locks; if so, they are held within, and nobody is waited for."""
    with ExitStack() as taken:
        yield all(_taken(path, taken) for path in paths)


def _taken(path: Path, taken: ExitStack) -> bool:
    try:
        taken.enter_context(FileLock(path, blocking=False, thread_local=False))
    except Timeout:
        return False
    return True


def runs_lock_file(workspace: Path) -> Path:
    """The file that ``runs_lock`` locks."""
    return workspace / "runs.lock"


@contextmanager
def runs_lock(workspace: Path) -> Iterator[None]:
    """Hold still which runs there are and what they keep: no run is added, tagged or collected meanwhile.

    Raises:
        CoevoError: another process does so, and does not come to an end.
    """
    lock = FileLock(runs_lock_file(workspace), timeout=PATIENCE, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise CoevoError(f"{workspace}: another process adds or collects runs: try again when it has ended") from None
    try:
        yield
    finally:
        lock.release()
