"""``python guard.py COMMAND ...``: run a command that ends when this process's standard input does.

The input ends with the parent, however that ends, kill -9 included. The command leads its own process group, so that
all its children end with it. Only the standard library is imported, so that it starts at once.
"""

import os
import signal
import subprocess
import sys
import threading

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL."""


def main() -> None:
    """Run the command; exit with its status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which may want to finish its work
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    signal.signal(signal.SIGTERM, lambda *_: _signal(child, signal.SIGKILL))
    threading.Thread(target=_listen, args=(child,), daemon=True).start()
    status = child.wait()
    _signal(child, signal.SIGKILL)
    os._exit(status if status >= 0 else 128 - status)  # a thread reads the input, which no exit may wait for


def _listen(child: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    _signal(child, signal.SIGTERM)
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        _signal(child, signal.SIGKILL)


def _signal(child: subprocess.Popen[bytes], kind: signal.Signals) -> None:
    """Signal the whole group; do nothing if none of its processes is left."""
    try:
        os.killpg(child.pid, kind)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    main()
