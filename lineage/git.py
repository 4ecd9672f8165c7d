"""Git by subprocess, in one repository, independent of the user's configuration and environment."""

import fcntl
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from coevo.lineage.atomic_files import needing_locks
from coevo.utilities.errors import CoevoError
from coevo.utilities.system_faults import remedy

SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "core.fsync": "all",
    "core.quotePath": "false",
    "core.symlinks": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
CAREFUL = {
    "core.bigFileThreshold": "1m",
    "core.deltaBaseCacheLimit": "16m",
    "core.packedGitLimit": "64m",
    "core.packedGitWindowSize": "16m",
    "fetch.fsckObjects": "true",
    "pack.threads": "1",
}
"""For a repository with foreign objects: large ones are not unpacked in memory, malformed ones are refused."""
BOUNDS = ("sh", "-c", 'ulimit -v 300000 2>/dev/null; ulimit -t 120; exec "$@"', "sh")
"""Limits of memory (kB; if the system supports one) and of CPU time (s), which git's own children inherit."""
IDENTITY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "coevo"), ("EMAIL", "coevo@localhost"))
}


class Git:
    """The repository with the work tree ``root``. Its path is explicit, so git never finds an enclosing one."""

    def __init__(self, root: Path, bounded: bool = False) -> None:
        """Repository at ``root``.

        Args:
            root: its work tree.
            bounded: True for foreign content, which limits git's memory and time.
        """
        self.root = root
        self._before: Sequence[str] = BOUNDS if bounded else ()
        self._settings = SETTINGS | CAREFUL if bounded else SETTINGS
        self._dir = root / ".git"
        self._gate = self._dir / "coevo.gate"

    def init(self) -> None:
        """Create an empty repository with the branch ``main``."""
        self._dir.mkdir()
        self._gate.touch()
        self("init", "--quiet", "--template=", "--initial-branch=main")

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run one git command and return its output.

        Raises:
            CoevoError: git is missing, or the command failed.
        """
        done = self.attempt(*arguments, stdin=stdin)
        if done.returncode != 0:
            said = " ".join(done.stderr.decode(errors="replace").split()) or f"exit status {done.returncode}"
            raise CoevoError(f"git {arguments[0]} failed in {self.root}: {said}{remedy(said)}")
        return done.stdout.decode()

    def attempt(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[bytes]":
        """Run one git command whose failure is a valid result.

        Raises:
            CoevoError: git is missing.
        """
        return self._run(arguments, stdin.encode())

    def _run(self, arguments: Sequence[str], stdin: bytes) -> "subprocess.CompletedProcess[bytes]":
        options = [part for key, value in self._settings.items() for part in ("-c", f"{key}={value}")]
        with self._open_gate() as gate:
            with needing_locks():
                fcntl.flock(gate, fcntl.LOCK_SH)
            try:
                return subprocess.run(
                    [*self._before, "git", *options, *arguments],
                    cwd=self.root,
                    env=self._environment(),
                    input=stdin,
                    capture_output=True,
                    pass_fds=[gate.fileno()],
                    check=False,
                    process_group=0,  # Ctrl-C goes to the caller, which may want to finish its work
                )
            except FileNotFoundError:
                raise CoevoError("git is not on PATH: install git 2.32 or later") from None

    def fetch(self, source: Path, refspec: str, *options: str) -> None:
        """Fetch from another of coevo's repositories on this machine, whichever user owns it, as one on a mounted disk.

        Its own git process checks the owner, and takes no setting of this one's: so the command that starts it has it.

        Raises:
            CoevoError: it failed.
        """
        directory = (source / ".git").resolve()
        safe = [part for path in (directory, directory.parent) for part in ("-c", f"safe.directory={path}")]
        command = shlex.join(["git", *safe, "upload-pack"])
        self("fetch", "--quiet", "--no-tags", f"--upload-pack={command}", *options, str(directory), refspec)

    def store(self, kind: str, content: bytes) -> None:
        """Write one object, for example a ``blob``."""
        self._run(("hash-object", "-w", "-t", kind, "--stdin"), content)

    def settle(self) -> list[str]:
        """Wait for commands that outlived a killed process, then remove the locks of such a process.

        Every command inherits the gate, so it stays shut until the last of them has ended. Call it only under the
        run's lock.

        Returns:
            the removed locks, relative to the work tree.
        """
        with self._open_gate() as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            stale = self.locks()
            for lock in stale:
                (self.root / lock).unlink()
        return stale

    def locks(self) -> list[str]:
        """Current lock files, relative to the work tree; a live command may hold them."""
        found = [*self._dir.glob("*.lock"), *(self._dir / "refs").rglob("*.lock")]
        return sorted(str(lock.relative_to(self.root)) for lock in found)

    def _open_gate(self) -> IO[str]:
        """Open the gate for reading, so that a run can be read on a read-only disk."""
        if not self._gate.exists():
            self._gate.touch()
        return self._gate.open(encoding="utf-8")

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        isolated = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
        variables = {"GIT_DIR": str(self._dir), "GIT_WORK_TREE": str(self.root), "LC_ALL": "C"}
        return {**inherited, **isolated, **variables, **IDENTITY}


def commit_of(path: Path) -> str | None:
    """Short hash of the last commit of a user's file; None where it has changed since, or is in no repository."""
    command = ("git", "--no-optional-locks", "-C", str(path.parent))
    try:
        changed, last = (
            subprocess.run([*command, *arguments, "--", path.name], capture_output=True, text=True, check=False)
            for arguments in (("status", "--porcelain"), ("log", "-1", "--format=%h"))
        )
    except FileNotFoundError:
        return None
    return last.stdout.strip() or None if changed.returncode == 0 and not changed.stdout.strip() else None
