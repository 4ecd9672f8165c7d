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
"""Seconds that the worker and its night have to end by themselves; what the night has committed is safe all the same."""


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
    """Run a command, pass on what interrupts us, and end all of its processes that are there ``grace`` seconds later.

    Prefect's worker waits for its night, which waits for whoever it publishes to: that may take minutes.
    """
    child = subprocess.Popen(command, env={**os.environ, **SETTINGS}, process_group=0)
    asked: list[float] = []

    def forward(number: int, _: FrameType | None) -> None:
        asked.append(time.monotonic())
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return _end_of(child, asked, grace)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_of(child: "subprocess.Popen[bytes]", asked: Sequence[float], grace: float) -> int:
    """Its exit code. The processes below it are remembered while it is there: afterwards nobody knows whose they were."""
    below: set[psutil.Process] = set()
    while True:
        try:
            code = child.wait(0.2 if asked else 1.0)
        except subprocess.TimeoutExpired:
            if asked:
                below |= _below(child.pid)
            if asked and time.monotonic() > asked[0] + grace:
                child.kill()
            continue
        _kill(below)
        return code


def _below(pid: int) -> set[psutil.Process]:
    try:
        return set(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return set()


def _kill(processes: set[psutil.Process]) -> None:
    """A process that has ended meanwhile is not mistaken for one with its number."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
