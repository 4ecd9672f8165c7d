"""Runs Python scripts in processes forked from one that has the large libraries imported already.

Most of what a command costs is importing them. Each run is still a process of its own, with its own group, environment
and end, and can be killed like any other.
"""

import atexit
import ctypes
import importlib
import multiprocessing
import multiprocessing.forkserver
import os
import runpy
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from support import spare

ROOT = Path(__file__).parents[2]
PAUSE = 0.05
"""Seconds between looks at a process."""
PRELOADED = "tests.support.preloaded"
_server = multiprocessing.get_context("forkserver")
_lock = threading.Lock()
"""Starting one process collects others, and a process can be collected but once."""


def prepare():
    """Start the process that imports; it must come before any other fork server of this process.

    A fork server skips what it cannot import, and does not look in its directory where PYTHONSAFEPATH is set, as it is
    once a test has called a command in this process.
    """
    _server.set_forkserver_preload([PRELOADED])  # a test's environment has set its own
    with patch.dict(os.environ, PYTHONPATH=str(ROOT)):
        multiprocessing.forkserver.ensure_running()


class Running:
    """A script that runs."""

    def __init__(self, line, environment, said, within):
        self.args, self._said = line, said
        self._process = _server.Process(target=_become, args=(line, environment, said, within))
        with _lock:
            prepare()
            self._process.start()
        self.pid = self._process.pid

    def poll(self):
        """Its exit code; None while it runs."""
        with _lock:
            return self._process.exitcode

    def wait(self, timeout):
        """Its exit code.

        Raises:
            subprocess.TimeoutExpired: it takes longer.
        """
        give_up = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > give_up:
                raise subprocess.TimeoutExpired(self.args, timeout, *self.said())
            time.sleep(PAUSE)
        return self.poll()

    def kill(self):
        """With SIGKILL, if it has not ended."""
        with _lock:
            self._process.kill()

    def said(self):
        """Standard output and standard error so far."""
        return [path.read_text() if path.exists() else "" for path in self._said]


@contextmanager
def running(script, *arguments, environment, within=None):
    """A script at the root of the project, in the namespaces of a process if one is given; it ends with the block."""
    with TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("stdout", "stderr")]
        process = Running([str(script), *map(str, arguments)], environment, said, within)
        try:
            yield process
        finally:
            process.kill()
            process.wait(60)


def run(script, *arguments, environment, timeout, within=None):
    """Result, as ``subprocess.run`` returns it, of a script that is ``running``.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    with running(script, *arguments, environment=environment, within=within) as process:
        code = process.wait(timeout)
        return subprocess.CompletedProcess(process.args, code, *process.said())


def _become(line, environment, said, within):
    importlib.import_module(PRELOADED)  # which takes long only in a fork server that a test's environment has started
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(said, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    if within is not None:
        _join(within)
    os.chdir(ROOT)
    if {"run", "resume"} & set(line):
        spare.prepare()
    sys.argv = line
    try:
        runpy.run_path(line[0], run_name="__main__")
    finally:
        atexit._run_exitfuncs()


def _join(process):
    """As ``nsenter`` does; ``os.setns`` is there from Python 3.12."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind in ("user", "mnt"):
        with Path(f"/proc/{process}/ns/{kind}").open("rb") as namespace:
            if libc.setns(namespace.fileno(), 0):
                raise OSError(ctypes.get_errno(), f"setns {kind}")
