"""One writer a run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from configs.errors import CoevoError
from lineage.workspace import RunPaths


@contextmanager
def writer_lock(run: RunPaths) -> Iterator[None]:
    """Hold a run's lock. It ends with the process, whatever ends that; programs started meanwhile do not inherit it.

    Raises:
        CoevoError: another process holds it; names the run and that process.
    """
    holder = run.lock.with_suffix(".pid")
    lock = FileLock(run.lock, blocking=False, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        pid = holder.read_text(encoding="utf-8") if holder.exists() else "unknown"
        raise CoevoError(f"run {run.name!r} is in use by process {pid}: wait for it, or stop it") from None
    try:
        holder.write_text(str(os.getpid()), encoding="utf-8")
        yield
    finally:
        lock.release()
