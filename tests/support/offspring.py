"""A simulator whose worker starts processes that try to outlive it, or hangs, as its action says."""

import ctypes
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

from support.simulators import Sum, Sums
from support.storm import append

HALF = b'{"step": {"observation": "to'
SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]


def connection():
    """Descriptor of the worker's connection to its run: its only socket."""
    numbers = (int(path.name) for path in Path("/proc/self/fd").iterdir())
    return next(number for number in numbers if is_socket(number))


def is_socket(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False


class Parent(Sum):
    """A live episode that starts processes."""

    def act(self, action):
        if action == "1":
            return super().act(action)
        for part in action.split("+"):
            getattr(self, part)()
        return super().act("1")

    def sleep(self):
        self.note("busy")
        ctypes.PyDLL(None).usleep(600_000_000)  # in C, with the interpreter's lock

    def compute(self):
        self.note("busy")
        while True:
            pass

    def child(self, **how):
        append(self.log, f"child {subprocess.Popen(SLEEP, **how).pid}")

    def session(self):
        self.child(start_new_session=True)

    def orphan(self):
        """A daemon: a double fork in a session of its own."""
        first = os.fork()
        if first == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                append(self.log, f"child {os.getpid()}")
                time.sleep(600)
            os._exit(0)
        os.waitpid(first, 0)
        time.sleep(0.3)

    def holder(self):
        """A child that holds a copy of the connection."""
        if os.fork() == 0:
            append(self.log, f"child {os.getpid()}")
            time.sleep(600)
        time.sleep(0.3)

    def half(self):
        """The first part of an answer."""
        os.write(connection(), HALF)

    def drip(self):
        """An answer that comes byte by byte and never ends."""
        self.note("busy")
        while True:
            os.write(connection(), b"[")
            time.sleep(0.1)

    def stop(self):
        self.note("busy")
        os.kill(os.getpid(), signal.SIGSTOP)

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Parents(Sums):
    """Sums whose live episodes start processes."""

    live = Parent


class Leaving(Parent):
    """A live episode that does what its last action says only when it is closed."""

    def act(self, action):
        self.deed = action
        return super().act("1")

    def close(self):
        super().act(self.deed)

    def deaf(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def fail(self):
        raise ValueError("cannot close")


class Leavers(Parents):
    """Sums whose live episodes start processes, or hang, when they are closed."""

    live = Leaving
