"""The ``coevo`` program, which settles streams, interpreter and Ctrl-C before any large import."""

import fcntl
import os
import signal
import sys
from contextlib import suppress
from locale import getencoding

from coevo.flows.console.interrupt import heeded
from coevo.flows.console.steps import steps_shown
from coevo.utilities.garbage import collect_seldom

SILENT = {
    "TQDM_DISABLE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
"""Settings of libraries that show no progress bars."""
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Setting under which waiting threads leave their core to others, which matters on a busy machine."""


def main() -> None:
    """Run the command line; Ctrl-C during the interpreter's shutdown ends it at once."""
    _open_streams()  # before anything opens a file
    collect_seldom()
    try:
        with heeded():
            _settle_interpreter()
            if not sys.stderr.isatty():
                os.environ.update({name: value for name, value in SILENT.items() if name not in os.environ})
            with steps_shown(sys.argv[1:]):
                from coevo.flows.cli.app import main as command

                command()
    finally:
        _drop_unwritten()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_streams() -> None:
    """Open closed standard streams on the null device: the next file would get their descriptor, and their output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if not _serves(number):
            null = os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor, so that it is mostly this one
            os.dup2(null, number) if null != number else os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def _serves(number: int) -> bool:
    """Report whether a standard stream is open, and for its direction: `1</dev/null` lets nobody write."""
    try:
        access = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        return False
    return access != (os.O_RDONLY if number else os.O_WRONLY)


def _drop_unwritten() -> None:
    """Leave nothing in a stream on a full disk: the interpreter would say so below its last line, and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # without room, without a reader, or closed
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _settle_interpreter() -> None:
    """Start the interpreter anew where variables of the user's environment let libraries fail; children inherit it.

    Files are read and written as UTF-8 in every locale. Transformers needs its docstrings, which ``PYTHONOPTIMIZE=2``
    removes; a warning of a library is no error of the user.
    """
    os.environ.update({name: value for name, value in PATIENT.items() if name not in os.environ})
    settled = dict(os.environ)
    if getencoding().lower() not in ("utf-8", "utf8"):
        settled["PYTHONUTF8"] = "1"
    if sys.flags.optimize:
        settled.pop("PYTHONOPTIMIZE", None)
    if any(option.startswith("error") for option in sys.warnoptions):
        settled.pop("PYTHONWARNINGS", None)
    if settled != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], settled)
