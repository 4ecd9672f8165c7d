"""Runs a ``coevo`` command in this process and kills it with SIGKILL at a named function.

    python tests/support/kill_at.py --kill tasks.play:Player._turn@5 -- resume first --workspace w
    python tests/support/kill_at.py --without memory.store:Bank.restore -- resume first --workspace w

``module:Name.attr@n`` dies when the function is entered for the n-th time, ``module:Name.attr@n+`` when it returns;
``--without`` takes the function out (it does nothing), to show that a test notices. Production code has no hooks.
"""

import argparse
import functools
import importlib
import os
import signal
import sys
from pathlib import Path


def locate(target):
    module, _, path = target.partition(":")
    owner = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def kill_in(target):
    path, _, count = target.partition("@")
    after = count.endswith("+")
    left = [int(count.rstrip("+"))]
    owner, name = locate(path)
    original = getattr(owner, name)

    def die():
        print(f"killed in {target}", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        left[0] -= 1
        if left[0] == 0 and not after:
            die()
        result = original(*args, **kwargs)
        if left[0] == 0:
            die()
        return result

    setattr(owner, name, wrapped)


def take_out(target):
    owner, name = locate(target)
    setattr(owner, name, lambda *args, **kwargs: [])


def main():
    sys.path.insert(0, str(Path(__file__).parents[2]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--kill")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    for target in arguments.without:
        take_out(target)
    if arguments.kill:
        kill_in(arguments.kill)
    from flows.cli import main as coevo

    coevo([part for part in arguments.command if part != "--"])


if __name__ == "__main__":
    main()
