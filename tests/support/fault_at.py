"""Runs a command in this process and lets something happen to its surroundings at a named function.

    python tests/support/fault_at.py full:DIRECTORY coevo.lineage.lineage:write_manifest@2 -- coevo resume first
    python tests/support/fault_at.py clock:-86400 coevo.lineage.lineage:Lineage.commit@2 -- driver WORKSPACE REVISIONS

``full`` leaves no room on the disk of a directory, ``readonly`` lets nothing below a directory be opened for writing,
``clock`` sets this process's clock, ``kill`` kills a server's process group, ``hang`` makes a file and then does
nothing for ten minutes, ``die`` kills this process, and ``die:parent`` the one that started it before. The function
then continues and meets the fault. Several faults may be named, each with its place; a place ``trainer:…`` is in the
trainer's process. Production code has no hooks.
"""

import functools
import json
import os
import signal
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from support import struck_trainer
from support.disk import cover, fill
from support.kill_at import locate

from coevo.utilities.errors import CoevoError
from coevo.utilities.system_faults import fault


def full(directory):
    fill(Path(directory))


def clock(seconds):
    real, real_ns, shift = time.time, time.time_ns, float(seconds)
    time.time = lambda: real() + shift
    time.time_ns = lambda: real_ns() + int(shift * 1e9)


def readonly(directory):
    cover(Path(directory))


def kill(pid):
    os.killpg(int(pid), signal.SIGKILL)


def hang(mark):
    Path(mark).touch()
    time.sleep(600)


def die(who):
    if who == "parent":
        os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


FAULTS = {"full": full, "readonly": readonly, "clock": clock, "kill": kill, "hang": hang, "die": die}
IN_TRAINER = "trainer:"


def happen_at(what, target):
    if target.startswith(IN_TRAINER):
        happen_in_trainer(what, target.removeprefix(IN_TRAINER))
        return
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


def happen_in_trainer(what, target):
    """Put ``struck_trainer`` in place of the module that is the trainer's process."""
    from coevo.models.trainer import trainer_launch

    trainer_launch.CHILD = f"support.{Path(struck_trainer.__file__).stem}"
    os.environ |= {struck_trainer.NAME: json.dumps([what, target]), "PYTHONPATH": str(Path(__file__).parents[1])}


def driven(workspace, revisions):
    """Error of the command, as the command line words it."""
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
    end = sys.argv.index("--")
    for what, target in zip(sys.argv[1:end:2], sys.argv[2:end:2], strict=True):
        happen_at(what, target)
    command, *arguments = sys.argv[end + 1 :]
    if command == "driver":
        sys.exit(driven(*arguments))
    from coevo.flows.cli.app import main as coevo

    coevo(arguments)


if __name__ == "__main__":
    main()
