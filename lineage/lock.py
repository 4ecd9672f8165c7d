"""Locks: one writer per run, and one process at a time that adds runs or collects garbage."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from coevo.lineage.atomic_files import needing_locks
from coevo.utilities.errors import CoevoError

TIMEOUT_S = 60.0
"""Seconds to wait for the runs' lock: creating a run takes less; collecting in a large workspace may take more."""


class Locked(Protocol):
    """A run as the lock sees it."""

    @property
    def name(self) -> str:
        """Name of the run."""

    @property
    def lock(self) -> Path:
        """File of the writer's lock."""


_purpose: ContextVar[str | None] = ContextVar("purpose", default=None)


@contextmanager
def holding_for(purpose: str) -> Iterator[None]:
    """Set the purpose of locks taken within the block; a process that finds the run locked reports it."""
    token = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(token)


@contextmanager
def writer_lock(run: Locked) -> Iterator[None]:
    """Hold a run's lock. It ends with the process in any case; programs started meanwhile do not inherit it.

    Raises:
        CoevoError: another process holds it; names the run and that process.
    """
    note = _note(run)
    lock = FileLock(run.lock, blocking=False, thread_local=False)
    try:
        with needing_locks():
            lock.acquire()
    except Timeout:
        raise CoevoError(f"run {run.name!r} is in use by process {_noted(run)}: wait for it, or stop it") from None
    try:
        note.write_text(" ".join([str(os.getpid()), *_why()]), encoding="utf-8")
        yield
    finally:
        lock.release()


def holder(run: Locked) -> str | None:
    """Id of the process that holds the run's lock, with its purpose; None if no process holds it."""
    return _noted(run) if in_use(run) else None


def _note(run: Locked) -> Path:
    return run.lock.with_suffix(".pid")


def _noted(run: Locked) -> str:
    try:
        return _note(run).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "unknown"


def _why() -> list[str]:
    purpose = _purpose.get()
    return [] if purpose is None else [f"({purpose})"]


def in_use(run: Locked) -> bool:
    """True if a live process holds the run's lock. Nothing is written; the lock is probed for an instant only."""
    return held(run.lock)


def was_used(run: Locked) -> bool:
    """True if a process has held the run's lock: one that was just created may be about to be used."""
    return _note(run).exists()


def held(path: Path) -> bool:
    """True if a live process holds the lock of a file."""
    if not path.exists():
        return False
    with path.open("rb") as lock:
        try:
            with needing_locks():
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def if_free(*paths: Path) -> Iterator[bool]:
    """Take these locks without waiting; yield True if no other process holds one, and hold them in the block."""
    with ExitStack() as taken:
        yield all(_taken(path, taken) for path in paths)


def _taken(path: Path, taken: ExitStack) -> bool:
    try:
        taken.enter_context(FileLock(path, blocking=False, thread_local=False))
    except Timeout:
        return False
    return True


@contextmanager
def cache_lock(cache: Path, alone: bool = False) -> Iterator[bool]:
    """Add objects to a cache until a revision names them, beside other processes, or remove objects alone.

    Args:
        cache: the cache.
        alone: True to remove; yields False, without waiting, if another process adds objects.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("ab") as lock:
        try:
            with needing_locks():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
            free = True
        except BlockingIOError:
            free = False
        yield free


def runs_lock_file(workspace: Path) -> Path:
    """File that ``runs_lock`` locks."""
    return workspace / "runs.lock"


@contextmanager
def runs_lock(workspace: Path) -> Iterator[None]:
    """Freeze the set of runs and everything they keep: no run is added, tagged or collected meanwhile.

    Raises:
        CoevoError: another process holds the lock and does not finish.
    """
    lock = FileLock(runs_lock_file(workspace), timeout=TIMEOUT_S, thread_local=False)
    try:
        with needing_locks():
            lock.acquire()
    except Timeout:
        raise CoevoError(f"{workspace}: another process adds or collects runs: try again when it has ended") from None
    try:
        yield
    finally:
        lock.release()
