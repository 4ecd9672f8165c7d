"""The worker: takes nights from the server of its workspace when they fall due, and plays each in a process."""

import os
import signal
import subprocess
import sys
from types import FrameType

from flows.output import line
from flows.servers import answers, use_prefect
from lineage.workspace import Workspace

SETTINGS = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
    "PREFECT_LOGGING_TO_API_ENABLED": "true",
}
"""What a night says is read on Prefect's pages and in the worker's terminal; that a stage has ended is not said."""


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
    command = [sys.executable, "-P", "-m", "prefect", "worker", "start", "--pool", pool, "--type", "process"]
    child = subprocess.Popen(command, env={**os.environ, **SETTINGS}, process_group=0)

    def forward(number: int, _: FrameType | None) -> None:
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
