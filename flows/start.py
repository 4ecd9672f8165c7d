"""The ``coevo`` program: it heeds Ctrl-C before anything large is imported."""

import signal

from flows.interrupt import heeded


def main() -> None:
    """Run the command line; Ctrl-C while the interpreter then takes itself apart ends it at once."""
    try:
        with heeded():
            from flows.cli import main as command

            command()
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
