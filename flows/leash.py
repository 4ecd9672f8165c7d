"""``python -m flows.leash MODULE ...``: runs a module that is asked to end when this process's standard input does.

The input ends with the parent, whatever ends that, kill -9 included. Signals reach the module as without a leash.
"""

import os
import runpy
import signal
import sys
import threading
import time

GRACE = 30.0
"""Seconds between asking and ending."""


def main() -> None:
    """Run the module as ``python -m`` does."""
    threading.Thread(target=_listen, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _listen() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


if __name__ == "__main__":
    main()
