"""A process forked before its run has threads, with the large libraries imported already: it becomes the trainer.

It is a child of the run with pipes, session and end of its own, as the one that a run starts itself. Runs on a GPU, or
with several trainer processes, start theirs as ever.
"""

import json
import multiprocessing
import os
import runpy
import socket
import sys

from coevo.models.trainer import trainer_launch
from coevo.utilities import processes
from coevo.utilities.processes import ServerProcess

ALONE = ["{python}", "-P", "-m", trainer_launch.CHILD]


class Trainer:
    """The attributes of a process that ``ServerProcess`` uses."""

    def __init__(self):
        self._ours, theirs = socket.socketpair()
        self._process = multiprocessing.get_context("fork").Process(
            target=_become, args=(self._ours, theirs), daemon=True
        )
        self._process.start()
        self.pid = self._process.pid
        theirs.close()

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self.returncode

    def wait(self):
        self._process.join()
        return self.returncode

    def begin(self, environment, log):
        """Become the trainer, in a session of its own once this returns."""
        (requests, stdin), (stdout, replies) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(stdin, "wb", buffering=0), os.fdopen(stdout, "rb", buffering=0)
        with log.open("ab") as errors:
            ends = [requests, replies, errors.fileno()]
            socket.send_fds(self._ours, [json.dumps(environment).encode()], ends)
            self._ours.recv(1)
        os.close(requests)
        os.close(replies)


class Begun(ServerProcess):
    """Handle of such a process."""

    def __init__(self, trainer, launch):
        trainer.begin(os.environ | processes.placed(launch).variables, launch.log)
        self._process = trainer


def prepare():
    """Keep such a process for this one's trainer."""
    spare = [Trainer()]

    def start(place, launch):
        if spare and launch.command == ALONE and launch.variables["DS_ACCELERATOR"] == "cpu":
            return Begun(spare.pop(), launch)
        return ServerProcess(launch)

    processes.Place.start = start


def _become(ours, channel):
    ours.close()
    os.setsid()
    environment, ends, _, _ = socket.recv_fds(channel, 2**20, 3)
    if not environment:
        return  # the run has ended without a trainer
    for number, end in enumerate(ends):
        os.dup2(end, number)
        os.close(end)
    os.environ.clear()
    os.environ.update(json.loads(environment))
    sys.stdin, sys.argv = os.fdopen(0), [trainer_launch.CHILD]
    channel.send(b"!")
    channel.close()
    runpy.run_module(trainer_launch.CHILD, run_name="__main__", alter_sys=True)
