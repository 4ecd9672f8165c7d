"""Runs a command in this process and lets something happen to its surroundings at a named function.

    python tests/support/fault_at.py full:DIRECTORY lineage.lineage:write_manifest@2 -- coevo resume first
    python tests/support/fault_at.py clock:-86400 lineage.lineage:Lineage.commit@2 -- driver WORKSPACE REVISIONS

``full`` leaves no room on the disk of a directory, ``clock`` sets this process's clock. The function then goes on, and
meets what has happened. Production code has no hooks.
"""

import functools
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from support.disk import fill
from support.kill_at import locate

from configs.errors import CoevoError
from configs.faults import fault


def full(place):
    fill(Path(place))


def clock(seconds):
    real, real_ns, shift = time.time, time.time_ns, float(seconds)
    time.time = lambda: real() + shift
    time.time_ns = lambda: real_ns() + int(shift * 1e9)


FAULTS = {"full": full, "clock": clock}


def happen_at(what, target):
    kind, _, argument = what.partition(":")
    path, _, count = target.partition("@")
    left = [int(count)]
    owner, name = locate(path)
    original = getattr(owner, name)

    @functools.wraps(original)
    def struck(*args, **kwargs):
        left[0] -= 1
        if left[0] == 0:
            FAULTS[kind](argument)
        return original(*args, **kwargs)

    setattr(owner, name, struck)


def driven(workspace, revisions):
    """What went wrong, in the words of the command line."""
    from support.lineage_driver import play

    try:
        play(workspace, int(revisions))
    except CoevoError as error:
        return str(error)
    except Exception as error:
        said = fault(error)
        if said is None:
            raise
        return said


def main():
    what, target, _, command, *arguments = sys.argv[1:]
    happen_at(what, target)
    if command == "driver":
        sys.exit(driven(*arguments))
    from flows.cli import main as coevo

    coevo(arguments)


if __name__ == "__main__":
    main()
