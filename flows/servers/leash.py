"""``python -m coevo.flows.servers.leash MODULE ...``: run a module until this process's standard input ends.

The input ends when the parent ends, by kill -9 too. Signals reach the module as without a leash.
"""

import os
import runpy
import signal
import sys
import threading
import time

STOP_TIMEOUT_S = 30.0
"""Seconds between SIGTERM and the end of the process."""


def main() -> None:
    """Run the module as ``python -m`` does."""
    threading.Thread(target=_listen, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _listen() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_TIMEOUT_S)
    os._exit(1)


if __name__ == "__main__":
    main()
