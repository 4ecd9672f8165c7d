"""The worker: takes nights from the server of its workspace when they fall due, and plays each in a process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

import psutil

from flows.output import line
from flows.servers import answers, use_prefect
from lineage.workspace import Workspace

SETTINGS = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
    "PREFECT_LOGGING_TO_API_ENABLED": "true",
}
"""What a night says is read on Prefect's pages and in the worker's terminal; that a stage has ended is not said."""

GRACE = 30.0
"""Seconds that the worker and its night have to end by themselves; what was committed is safe all the same."""


def work(place: Workspace) -> int:
    """Be the worker until interrupted; returns its exit code.

    It is Prefect's own, which gives up a server that has gone: where it was ours, another one is started then.
    """
    named = os.environ.get("PREFECT_API_URL")
    while True:
        url = use_prefect(place.root)
        from flows.schedules import POOL, prepare_server

        prepare_server(place)
        line(f"Nights of {place.root} begin here. Prefect is at {url.removesuffix('/api')}. Stop with Ctrl-C.")
        code = run_worker(POOL)
        if code == 0 or named or answers(url):
            return code
        line(f"The Prefect server at {url} has gone: starting another.")
        del os.environ["PREFECT_API_URL"]


def run_worker(pool: str) -> int:
    """Prefect's worker in a child process, which gets our environment and our signals."""
    return supervise([sys.executable, "-P", "-m", "prefect", "worker", "start", "--pool", pool, "--type", "process"])


def supervise(command: Sequence[str], grace: float = GRACE) -> int:
    """Run a command and pass on what interrupts us; what of it is left ``grace`` seconds later is ended.

    Prefect's worker waits for its night, which waits for whoever it publishes to: that may take minutes.
    """
    child = subprocess.Popen(command, env={**os.environ, **SETTINGS}, process_group=0)
    family = {psutil.Process(child.pid)}
    deadlines: list[float] = []

    def forward(number: int, _: FrameType | None) -> None:
        # Now, since afterwards nobody knows whose they were.
        family.update(_below(child.pid))
        deadlines.append(time.monotonic() + grace)
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while child.poll() is None and not (deadlines and time.monotonic() > deadlines[0]):
            time.sleep(0.2)
        if deadlines:
            _end(family | _below(child.pid), deadlines[0])
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _below(pid: int) -> set[psutil.Process]:
    try:
        return set(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return set()


def _end(processes: set[psutil.Process], deadline: float) -> None:
    """Wait for them, and kill what is left; none is mistaken for another one that has its number by now."""
    _, left = psutil.wait_procs(processes, timeout=max(0.0, deadline - time.monotonic()))
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
