"""Guards of a process tree: they end every process below them when the process that they serve ends.

``python process_guard.py COMMAND ...`` runs a command below one guard, which ends it when its own standard input ends:
the input ends with the parent, however that ends, kill -9 included. With ``--twice`` before the command, it has two
guards. With ``--detached``, it has two and ends on SIGTERM alone. ``guarded`` continues a process below two guards.

On Linux a guard is a subreaper: processes that leave their session or whose parents have ended stay below it, so that
it can find and end them. Only the standard library is imported, so that a guard starts at once.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

POLL_INTERVAL_S = 0.5
"""Seconds between two checks; most ends are noticed at once."""
STOP_TIMEOUT_S = 3.0
"""Seconds that the guarded process has to end by itself after the end of its owner."""
KILL_TIMEOUT_S = 5.0
"""Seconds in which the processes of a tree are killed, again and again until none is left."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
"""Options of Linux's ``prctl``: the signal that a process gets when its parent ends, and the adoption of orphans."""


def guarded(lifeline: int, owner: int, guards: int = 2, ask: bool = False) -> None:
    """Return in a process below guards, which leads a session; this process becomes the outermost guard.

    A guard ends all processes below it when its child has ended, when the owner has ended, and at once on SIGTERM. It
    then ends as its child did. Of two guards, each outlives a kill of the other one, and ends the tree.

    Args:
        lifeline: descriptor of a pipe or socket whose other end the owner holds.
        owner: id of the process with whose end all ends.
        guards: number of guards, one below the other.
        ask: whether the end of the owner is a SIGTERM for the child's process group, before all is killed.
    """
    for number in range(guards):
        innermost = number == guards - 1
        guard = _Guard(lifeline, owner, outer=number == 0)
        parent, child = os.getpid(), os.fork()
        if child:
            guard.stand(child, ask and innermost)
        guard.leave()
        os.setsid()
        _follow(parent, signal.SIGKILL if innermost else signal.SIGTERM)


class _Guard:
    """A process that waits for the end of its child, or of its owner."""

    def __init__(self, lifeline: int, owner: int, outer: bool) -> None:
        self._owner, self._outer = owner, outer
        self._owner_ended, self._told = False, False
        self._wakes = os.pipe()
        for end in self._wakes:
            os.set_blocking(end, False)
        self._events = select.poll()
        self._events.register(self._wakes[0], select.POLLIN)
        self._events.register(lifeline, 0)  # its hang-up is reported unasked
        self._owned = _opened(owner)
        if self._owned is not None:
            self._events.register(self._owned, select.POLLIN)
        signal.set_wakeup_fd(self._wakes[1])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the owner, which may want to finish its work
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._terminated)
        _control(PR_SET_CHILD_SUBREAPER, 1)

    def leave(self) -> None:
        """Undo in the child what the guard set up for itself."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for descriptor in (*self._wakes, self._owned):
            if descriptor is not None:
                os.close(descriptor)

    def stand(self, child: int, ask: bool) -> NoReturn:
        """Wait, end all processes below, and end as the child did."""
        status = None
        while status is None and not self._told and not self._owner_ended:
            self._wait()
            status = (_reaped() or {}).get(child)
        if status is None:
            status = self._leave_time(child, ask)
        _end_below()
        if not self._outer:
            os.kill(os.getppid(), signal.SIGCONT)  # the outer guard, which ends by itself unless it was stopped
        _end_as(signal.SIGTERM if status is None else status)

    def _wait(self) -> None:
        """Wait for an event, and note the end of the owner."""
        for descriptor, _ in self._events.poll(1000 * POLL_INTERVAL_S):
            if descriptor == self._wakes[0]:
                os.read(descriptor, 4096)
            else:
                self._owner_ended = True
        if self._owned is None:
            self._owner_ended |= not _exists(self._owner)

    def _leave_time(self, child: int, ask: bool) -> int | None:
        """Give the child some seconds to end by itself, and return its status."""
        if ask:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGTERM)
        status, give_up = None, time.monotonic() + STOP_TIMEOUT_S
        while status is None and not self._told and time.monotonic() < give_up:
            time.sleep(0.02)
            status = (_reaped() or {}).get(child)
        return status

    def _terminated(self, _: int, __: FrameType | None) -> None:
        self._told = True


def _end_below() -> None:
    """Kill all processes below this one, and reap them; give up after ``KILL_TIMEOUT_S`` on what cannot be killed."""
    give_up = time.monotonic() + KILL_TIMEOUT_S
    while _reaped() is not None and time.monotonic() < give_up:
        for pid in _below(os.getpid(), _children()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _reaped() -> dict[int, int] | None:
    """Wait statuses of children that have ended, by process id; None if no child is left."""
    ended: dict[int, int] = {}
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    except ChildProcessError:
        return ended or None
    return ended


def _children() -> dict[int, list[int]]:
    """Process ids of this machine by parent; empty where the system does not list them in ``/proc``."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(path.read_bytes().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    return children


def _below(pid: int, children: dict[int, list[int]]) -> Iterator[int]:
    for child in children.get(pid, ()):
        yield child
        yield from _below(child, children)


def _end_as(status: int) -> NoReturn:
    """End with the wait status of another process."""
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _follow(parent: int, number: int) -> None:
    """Get a signal when the parent ends; end now if it has ended already."""
    _control(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def _control(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _opened(pid: int) -> int | None:
    """Descriptor that reports the end of a process; None where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def main() -> None:
    """Run the command in a session of its own, with an empty input."""
    option = sys.argv[1] if sys.argv[1] in ("--detached", "--twice") else ""
    command = sys.argv[2:] if option else sys.argv[1:]
    guarded(0, 1 if option == "--detached" else os.getppid(), guards=2 if option else 1, ask=True)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        os._exit(127)


if __name__ == "__main__":
    main()
