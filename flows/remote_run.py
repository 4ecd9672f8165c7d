"""Continuing a run that lives at a remote: locked there, fetched, played here, and sent after each revision."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coevo.lineage.git import Git
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.reporter import in_stage, reporter
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.lineage.remote.remote_lock import RemoteLock
    from coevo.lineage.remote.remote_store import Store
    from coevo.lineage.revision.versioned_store import VersionedBank

POLL_INTERVAL_S = 2.0
"""Seconds between two looks for a new revision."""


@dataclass(frozen=True, slots=True)
class RemoteClaim:
    """How a process takes the lock of a run at a remote.

    Attributes:
        new: the run begins here, and the remote must not have it.
        take_over: take the lock from whoever has it.
        if_lost: wait until the lock is free or lost, and take it.
        purpose: purpose of this process, for others that want the lock.
    """

    new: bool = False
    take_over: bool = False
    if_lost: bool = False
    purpose: str = ""


@contextmanager
def at_remote(workspace: Workspace, run: str, remote: str | None, claim: RemoteClaim = RemoteClaim()) -> Iterator[None]:
    """Hold a run's lock at a remote within; fetch its revisions before, and send new ones while they are made.

    Args:
        workspace: where the run is continued.
        run: its name.
        remote: address of the remote; None for a run of this workspace alone, for which nothing happens.
        claim: how the lock is taken.

    Raises:
        CoevoError: another process has the lock or took it meanwhile, the remote fails, or the histories part.
    """
    if remote is None:
        yield
        return
    from coevo.lineage.remote.remote_address import to_push
    from coevo.lineage.remote.remote_lock import RemoteLock

    name = workspace.run(run).name
    with in_stage("looks at the remote"):
        store = to_push(remote)
        lock = RemoteLock(store, name, claim.purpose)
        lock.await_lost() if claim.if_lost else lock.take(claim.take_over)
    try:
        sender = _Sender(workspace, name, store, lock)
        with sender.renewing():  # also while much is fetched or sent
            _fetch(workspace, name, store, claim.new)
            with sender.sending():
                yield
    finally:
        lock.release()


class _Sender:
    """Two threads: one renews the lock, one sends revisions, which can take long."""

    def __init__(self, workspace: Workspace, run: str, store: "Store", lock: "RemoteLock") -> None:
        self._workspace = workspace
        self._run = run
        self._store = store
        self._lock = lock
        self._sent = ""
        self._ended = threading.Event()
        self._released = threading.Event()
        self._overtaken = False

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew the lock within; a process that another one overtakes is interrupted.

        Raises:
            CoevoError: another process has taken the lock.
        """
        thread = _thread(self._renew, "remote lock")
        try:
            yield
        except KeyboardInterrupt:
            if self._overtaken:
                raise self._refusal() from None
            raise
        finally:
            self._released.set()
            thread.join()
        if self._overtaken:  # the interrupt was ignored
            raise self._refusal()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send revisions within, and once more at the end, however it ends."""
        thread = _thread(self._work, "remote")
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            if not self._overtaken:
                self._send()

    def _renew(self) -> None:
        from coevo.lineage.remote.remote_lock import RENEWAL_S
        from coevo.lineage.remote.remote_store import Overtaken

        while not self._released.wait(RENEWAL_S):
            try:
                self._lock.renew()
            except Overtaken:
                self._overtaken = True
                reporter().warn(str(self._refusal()))
                # Raised here, it would not wake the main thread where that waits.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                return
            except (CoevoError, OSError) as error:  # tried again
                reporter().warn(f"{self._store.label}: {error}")

    def _work(self) -> None:
        while not self._ended.wait(POLL_INTERVAL_S) and not self._overtaken:
            try:
                self._send()
            except (CoevoError, OSError) as error:  # tried again
                reporter().warn(f"{self._store.label}: {error}")

    def _send(self) -> None:
        paths = self._workspace.run(self._run)
        head = _head(paths.lineage)
        if head and head != self._sent:
            from coevo.lineage.remote.push import push
            from coevo.lineage.remote.remote_objects import QuietMeter

            push(paths, self._workspace.cache, self._store, open_bank, QuietMeter())
            self._sent = head

    def _refusal(self) -> CoevoError:
        return CoevoError(
            f"run {self._run!r} at {self._store.label} was taken over by another process ({self._lock.owner()}): what "
            "was sent before is safe; the revisions of this workspace that were not are of no use any more"
        )


def _thread(work: Callable[[], None], name: str) -> threading.Thread:
    """A thread that has begun, in the context of its caller."""
    thread = threading.Thread(target=copy_context().run, args=(work,), name=name, daemon=True)
    thread.start()
    return thread


def _fetch(workspace: Workspace, run: str, store: "Store", new: bool) -> None:
    from coevo.lineage.remote.pull import AheadError, pull
    from coevo.lineage.remote.remote_objects import QuietMeter
    from coevo.lineage.remote.remote_store import one_line

    with one_line(store):
        there = bool(store.names("runs", run))
    if new and there:
        raise CoevoError(f"remote {store.label}: it has a run {run!r}: choose another name, or `coevo resume` it")
    if there:
        with in_stage("fetches the run"):
            try:
                pull(run, workspace, store, open_bank, QuietMeter())
            except AheadError:  # sent soon
                return


def _head(lineage: Path) -> str:
    """Last commit of a run; empty before there is one."""
    found = Git(lineage)("for-each-ref", "--format=%(objectname)", "refs/heads/main") if lineage.is_dir() else ""
    return str(found).strip()


def open_bank(path: Path) -> "VersionedBank":
    """Bank of files from elsewhere, once no table of it reads files outside."""
    from coevo.memory.bank.bank import Bank
    from coevo.memory.bank.lance_files import check_enclosed

    check_enclosed(path)
    return Bank(path)
