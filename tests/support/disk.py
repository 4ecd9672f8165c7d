"""A disk of a few megabytes that can be filled and made read-only, by root and by anybody else.

It is a tmpfs in a user and mount namespace of its own, so it needs no privilege and nothing outside sees it; a kernel
that allows no such namespaces fails the test, since nothing else makes the system say that there is no room.
"""

import resource
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

BALLAST = "ballast"


class SmallDisk:
    """Mounted at ``directory``, an empty directory, for those who run ``inside``."""

    def __init__(self, directory, size):
        self.directory = directory
        mount = f'mount -t tmpfs -o size={size} tmpfs "$0" && echo mounted && exec cat'
        self._holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = self._holder.stdout.readline()
        assert said == "mounted\n", f"this test needs user namespaces (unshare --user --mount): {said}"
        self.pid = self._holder.pid
        """A process inside."""
        self.outside = Path(f"/proc/{self.pid}/root{directory}")
        """The same files, for whoever does not run inside."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._holder.communicate()

    def inside(self, *command):
        """The command that runs another one where the disk is mounted."""
        return [
            "nsenter", f"--target={self._holder.pid}", "--user", "--mount", "--preserve-credentials", "--", *command
        ]  # fmt: skip

    def fill(self):
        fill(self.outside)

    def make_room(self):
        (self.outside / BALLAST).unlink()

    def remount(self, mode):
        subprocess.run(self.inside("mount", "-o", f"remount,{mode}", self.directory), check=True)

    def uncover(self):
        subprocess.run(self.inside("umount", self.directory), check=True)


def cover(directory):
    """Mount a small disk over itself, read-only, from inside: while files there are open it cannot be remounted.

    Another thread may open one between the two commands; it does not keep it for long.
    """
    subprocess.run(["mount", "--bind", directory, directory], check=True)
    for left in reversed(range(200)):
        done = subprocess.run(["mount", "-o", "remount,bind,ro", directory], check=not left, capture_output=left > 0)
        if done.returncode == 0:
            return
        time.sleep(0.05)


def fill(directory):
    """Leave no room where ``directory`` lies."""
    with (directory / BALLAST).open("ab", buffering=0) as ballast:
        for size in (1 << 16, 1):
            try:
                while True:
                    ballast.write(bytes(size))
            except OSError:
                continue


@contextmanager
def no_room():
    """Within, no file of this process or its children may grow: a full disk for tests that need no other process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
