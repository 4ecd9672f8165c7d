"""Runs Python scripts in processes forked from one that has the large libraries imported already.

Most of what a command costs is importing them. Each run is still a process of its own, with its own group, environment
and end, and can be killed like any other.
"""

import atexit
import multiprocessing
import os
import runpy
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
PAUSE = 0.05
"""Seconds between looks at a process."""
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(["tests.support.preloaded"])
_lock = threading.Lock()


def run(script, *arguments, environment, timeout):
    """What ``subprocess.run`` returns of a script that is run at the root of the project.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    line = [str(script), *arguments]
    with TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("stdout", "stderr")]
        process = _server.Process(target=_become, args=(line, environment, said))
        with _lock:
            process.start()
        code = _code(process, timeout)
        if code is None:
            raise subprocess.TimeoutExpired(line, timeout, *(path.read_bytes() for path in said))
        return subprocess.CompletedProcess(line, code, *(path.read_text() for path in said))


def _code(process, timeout):
    """Its exit code; None if it had to be killed. Starting one process collects others, hence the lock."""
    give_up = time.monotonic() + timeout
    while True:
        with _lock:
            if process.exitcode is not None:
                return process.exitcode
            if time.monotonic() > give_up:
                process.kill()
                process.join()
                return None
        time.sleep(PAUSE)


def _become(line, environment, said):
    os.setpgid(0, 0)
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(said, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = line
    try:
        runpy.run_path(line[0], run_name="__main__")
    finally:
        atexit._run_exitfuncs()
