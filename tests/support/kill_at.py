"""Runs a ``coevo`` command in this process and kills it with SIGKILL at a named place.

    python tests/support/kill_at.py --kill coevo.tasks.play.play:RolloutWorker.play_turn@5 -- resume first --workspace w
    python tests/support/kill_at.py --kill 'stage:update@2~0.08' --trace t -- resume first --workspace w
    python tests/support/kill_at.py --strike 'stage:update@2' --victims folder -- resume first --workspace w
    python tests/support/kill_at.py --without coevo.memory.bank.bank:Bank.restore -- resume first --workspace w

``module:Name.attr@n`` dies when the function is entered for the n-th time, ``…@n+`` when it returns, ``…@n~0.2`` 0.2
seconds after it was entered, wherever it is by then; ``stage:update@n`` names a stage of the loop. ``--without`` takes
the function out (it does nothing), to show that a test notices. ``--trace`` keeps in a file what is being done, see
``now``. ``--strike`` sends a signal to another process at such a place, and there may be several of them: the command
waits until a victim is named, see ``struck``. Production code has no hooks.
"""

import argparse
import functools
import importlib
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

PLACE = re.compile(r"(?P<where>[^@]+)@(?P<count>\d+)(?P<after>\+)?(~(?P<delay>[\d.]+))?")
STAGES = "coevo.tasks.stage:_Call.run"
PARTS = {
    "recovery": ("coevo.lineage.lineage:Lineage.recover", "starting"),
    "catching up": ("coevo.tasks.publish.catchup:unpublished", "starting"),
    "closing": ("coevo.tasks.publish.publisher:Publisher.close", "closing"),
}
"""Functions that a trace names besides the stages, and the names that it gives them."""
PUBLISHING = "coevo.tasks.publish.mlflow.tracker:Tracker.publish"
PICTURES = "coevo.tasks.publish.mlflow.tracker:publish_pictures"
"""Taken out of every run: they take most of the time of a publication, and no test of a whole run looks at them."""
REACHED, VICTIM, STRUCK = "reached", "victim", "struck"
"""Files of a folder of victims: the place that was reached; process and signal; the moment."""
PATIENCE = 900.0
"""Seconds that a command and the process that names its victims wait for each other."""
STRIKING = threading.Lock()
"""Held from a place to its strike: stages side by side take turns."""
WIDTH = 80
AND = " + "


def locate(target):
    """The object that has the attribute, and the attribute's name."""
    module, _, path = target.partition(":")
    owner = importlib.import_module(module)
    *parents, name = path.split(".")
    return functools.reduce(getattr, parents, owner), name


def wrap(target, around):
    """Put ``around(original, *arguments)`` in place of a function."""
    owner, name = locate(target)
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        return around(functools.partial(original, *args, **kwargs), *args)

    setattr(owner, name, wrapped)


def kill_in(target):
    """Die at a place that is written as the module says."""

    def die():
        print(f"killed in {target}", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    act_in(target, lambda: None, die)


def strike_in(target, victims):
    """Let another process name a victim at a place, and send it a signal."""
    victim = []

    def ask():
        STRIKING.acquire()
        write_whole(victims / REACHED, target)
        victim[:] = map(int, taken(victims / VICTIM).split())

    def strike():
        moment = time.monotonic()
        os.kill(*victim)
        write_whole(victims / STRUCK, str(moment))
        STRIKING.release()

    act_in(target, ask, strike)


def struck(victims, victim, number):
    """Name the victim of a command that waits at a place; the moment at which it was struck, by ``time.monotonic``."""
    write_whole(victims / VICTIM, f"{victim} {int(number)}")
    return float(taken(victims / STRUCK))


def taken(path):
    """Wait for a file, and remove it; its text."""
    give_up = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < give_up, f"there is no {path}"
        time.sleep(0.02)
    text = path.read_text()
    path.unlink()
    return text


def write_whole(path, text):
    """Write a file that is never seen half."""
    half = path.with_suffix(".half")
    half.write_text(text)
    half.rename(path)


def act_in(target, before, act):
    """Call ``act`` at a place, and ``before`` in front of its delay."""
    found = PLACE.fullmatch(target)
    where, left = found["where"], [int(found["count"])]
    stage = where.removeprefix("stage:") if where.startswith("stage:") else None

    def around(call, *args):
        fatal = False
        if stage is None or args[0].name == stage:
            left[0] -= 1
            fatal = left[0] == 0
        if fatal:
            before()
        if fatal and found["delay"]:
            threading.Thread(target=lambda: (time.sleep(float(found["delay"])), act()), daemon=True).start()
        elif fatal and not found["after"]:
            act()
        result = call()
        if fatal and found["after"]:
            act()
        return result

    wrap(STAGES if stage else where, around)


def trace_to(path):
    """Keep in a file what is being done: stages side by side, or else what was done last, and whether a revision is
    being published meanwhile."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    doing, lock = [], threading.Lock()

    def write(slot, text):
        os.pwrite(file, text.ljust(WIDTH)[:WIDTH].encode(), slot * WIDTH)

    def stage_within(call, *args):
        with lock:
            doing.append(args[0].name)
            write(0, AND.join(doing))
        try:
            return call()
        finally:
            with lock:
                doing.remove(args[0].name)
                write(0, AND.join(doing) or "between stages")

    def within(slot, name, afterwards):
        def around(call, *_):
            write(slot, name)
            try:
                return call()
            finally:
                write(slot, afterwards)

        return around

    write(0, "starting")
    write(1, "")
    wrap(STAGES, stage_within)
    for name, (target, afterwards) in PARTS.items():
        wrap(target, within(0, name, afterwards))
    wrap(PUBLISHING, within(1, "publishing", ""))


def now(path):
    """Activity of a traced process when it ended."""
    text = Path(path).read_text() if Path(path).exists() else ""
    return AND.join(part for part in (text[:WIDTH].strip(), text[WIDTH:].strip()) if part) or "starting"


def take_out(target):
    """Make a function do nothing."""
    owner, name = locate(target)
    setattr(owner, name, lambda *args, **kwargs: [])


def main():
    sys.path.insert(0, str(Path(__file__).parents[2]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--kill")
    parser.add_argument("--strike", action="append", default=[])
    parser.add_argument("--victims", type=Path)
    parser.add_argument("--trace")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = [part for part in arguments.command if part != "--"]

    def change():
        for target in (PICTURES, *arguments.without):
            take_out(target)
        if arguments.kill:
            kill_in(arguments.kill)
        for place in arguments.strike:
            strike_in(place, arguments.victims)
        if arguments.trace:  # around the kill, so that a stage is named before it dies at its very beginning
            trace_to(arguments.trace)

    if command[0] in ("run", "resume"):
        # Stages import Prefect, which would start a server of its own if it were imported before it knows of one.
        wrap("coevo.flows.start_run:use_prefect", lambda call, *_: (call(), change()))
        wrap("coevo.flows.start_run:_finished", lambda call, *_: (change(), call())[1])  # which needs no Prefect
    else:
        change()
    from coevo.flows.cli.app import main as coevo

    coevo(command)


if __name__ == "__main__":
    main()
