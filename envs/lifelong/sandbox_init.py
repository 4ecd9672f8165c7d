"""The program of a sandbox: it builds a root of its own, becomes its first process, and runs scripts in it.

``python -I -S sandbox_init.py`` reads a description of the root as a line of JSON, answers ``{}`` or
``{"refused": reason}``, then runs one script per line of JSON. It ends with its standard input, and everything in the
sandbox with it. Only the standard library is imported, since it starts with every episode.

The process enters new namespaces of users, mounts, processes, network, IPC, host name and control groups. The user 0 of
the sandbox is a user without rights outside. It has few capabilities, and cannot become another user, so that one limit
of processes holds for all of them.
"""

import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

NEW_MOUNTS, NEW_CGROUP, NEW_NAMES, NEW_IPC, NEW_USERS, NEW_PIDS, NEW_NET = (
    0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
READ_ONLY, NO_SUID, NO_DEVICES, NO_PROGRAMS, REMOUNT, BIND, RECURSIVE, PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
DETACH = 2
DEATH_SIGNAL, DUMPABLE, DROP_CAPABILITY, NO_NEW_PRIVILEGES = 1, 4, 24, 38
"""Options of Linux's ``prctl``."""
CAPABILITIES = (0, 1, 3, 4, 5)
"""Rights within the sandbox: change owners, read and write any of its files, be any file's owner, keep bits, kill."""
FIRST_ID, IDS = 1_000_000, 65_536
"""Users outside that stand for those of the sandbox, if root starts it."""
TOP = "/tmp"
"""Folder that the root is built on; hidden from this process alone."""
PROCESSES = "/dev/.kernel/proc"
"""Where ``/proc`` leads: its number of links, which is the machine's number of processes, is out of the way there."""
CONTROL = 9
"""Descriptor on which the shell reports that a script has ended."""
TAKE = f'IFS= read -r -d "" __script; eval "$__script" </dev/null; echo {{token}} $? >&{CONTROL}\n'
"""Line for the shell: read a script up to the next zero byte, run it without input, report its status with a token."""
MAX_BYTES = 1 << 16
"""Most bytes of a script's output."""
MAX_REPORT_BYTES, LONGEST_STATUS = 64, 4
"""Most bytes of a report, which is a token and a status, and of the status of a shell."""
POLL_S = 0.02
_C = ctypes.CDLL(None, use_errno=True)


class SandboxRefusedError(Exception):
    """The system refuses a part of the sandbox."""


def main() -> NoReturn:
    """Build the sandbox and serve it until the input ends."""
    plan = json.loads(sys.stdin.buffer.readline())
    try:
        _enter(bool(plan["accounts"]))
        first = os.fork()
        if first:
            # This process stays only so that the first one of the sandbox ends with it.
            os.close(0)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)
        _follow()
        _build(plan)
    except (SandboxRefusedError, OSError) as error:
        _say({"refused": str(error)})
        os._exit(1)
    sys.meta_path.clear()  # from here on, what a path names is what an agent wrote there
    _say({})
    Shell(plan["environment"], plan["limits"]).serve()
    os._exit(0)


def _enter(accounts: bool) -> None:
    """Enter all namespaces, as the user 0 of them."""
    rooted = os.geteuid() == 0
    if accounts and not rooted:
        raise SandboxRefusedError("accounts: only root may map users")
    done, mapped = os.pipe(), os.pipe()
    owner, users, groups = os.getpid(), os.geteuid(), os.getegid()
    helper = os.fork() if rooted else 0
    if rooted and not helper:
        os.read(done[0], 1)
        os.write(mapped[1], b"1" if _mapped(owner, FIRST_ID, FIRST_ID, IDS) else b"0")
        os._exit(0)
    _call("user namespaces", _C.unshare(NEW_USERS))
    if rooted:
        os.write(done[1], b"1")
        fits = os.read(mapped[0], 1) == b"1"
        os.waitpid(helper, 0)
    else:
        fits = _mapped(owner, users, groups, 1)
    if not fits:
        raise SandboxRefusedError("a map of users (uid_map)")
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    if rooted:
        os.setgroups([])
    _call("namespaces", _C.unshare(NEW_MOUNTS | NEW_CGROUP | NEW_NAMES | NEW_IPC | NEW_PIDS | NEW_NET))
    _follow()


def _mapped(pid: int, user: int, group: int, count: int) -> bool:
    try:
        if count == 1:
            _write(f"/proc/{pid}/setgroups", "deny")
        _write(f"/proc/{pid}/uid_map", f"0 {user} {count}")
        _write(f"/proc/{pid}/gid_map", f"0 {group} {count}")
    except OSError:
        return False
    return True


def _follow() -> None:
    """End with the parent; a change of users would take that back."""
    _C.prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def _build(plan: dict[str, Any]) -> None:
    """Build the root, move into it, and give up what the sandbox does not need."""
    _mount(None, "/", None, RECURSIVE | PRIVATE)
    _mount("tmpfs", TOP, "tmpfs", NO_SUID | NO_DEVICES, f"size={plan['bytes']},nr_inodes={plan['files']},mode=755")
    os.makedirs(TOP + PROCESSES)
    for folder, mode in plan["folders"].items():
        os.makedirs(TOP + folder, exist_ok=True)
        os.chmod(TOP + folder, mode)
    for target, source in plan["binds"].items():
        _bind(source, TOP + target, target.startswith("/dev/"))
    for path, (mode, text) in plan["texts"].items():
        os.makedirs(os.path.dirname(TOP + path), exist_ok=True)
        _write(TOP + path, text)
        os.chmod(TOP + path, mode)
    for path, target in plan["links"].items():
        os.symlink(target, TOP + path)
    # The system's settings are visible for a moment, to forbid further namespaces; then only processes are.
    _mount("proc", TOP + PROCESSES, "proc", NO_SUID | NO_DEVICES | NO_PROGRAMS)
    _write(TOP + PROCESSES + "/sys/user/max_user_namespaces", "0")
    _call("umount", _C.umount2((TOP + PROCESSES).encode(), DETACH))
    _mount("proc", TOP + PROCESSES, "proc", NO_SUID | NO_DEVICES | NO_PROGRAMS, "subset=pid")
    os.symlink(PROCESSES[1:], TOP + "/proc")
    for target, (source, read_only) in plan["mounts"].items():
        _seal(source, target, read_only)
    os.mkdir(TOP + "/.old")
    _call("pivot_root", _C.pivot_root(TOP.encode(), (TOP + "/.old").encode()))
    os.chdir("/")
    _call("umount", _C.umount2(b"/.old", DETACH))
    os.rmdir("/.old")
    _call("sethostname", _C.sethostname(b"sandbox", 7))
    for capability in range(64):
        if capability not in CAPABILITIES:
            _C.prctl(DROP_CAPABILITY, capability, 0, 0, 0)  # fails for those that this kernel does not know
    _call("no_new_privs", _C.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _call("dumpable", _C.prctl(DUMPABLE, 0, 0, 0, 0))
    _follow()
    _check_limit()


def _check_limit() -> None:
    """Find out whether processes are limited: the kernel exempts the machine's own root, under whatever name."""
    limits = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, limits[1]))
    try:
        child = os.fork()
    except BlockingIOError:
        resource.setrlimit(resource.RLIMIT_NPROC, limits)
        return
    if not child:
        os._exit(0)
    raise SandboxRefusedError("a limit of processes (RLIMIT_NPROC)")


def _bind(source: str, target: str, device: bool) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(source, target, None, BIND)
    flags = NO_SUID | (0 if device else READ_ONLY | NO_DEVICES)
    _mount(None, target, None, REMOUNT | BIND | flags)


def _seal(source: str, target: str, read_only: bool) -> None:
    """Make a path a mount, which nobody in the sandbox can rename, remove or replace; read-only, nor add to."""
    _mount(TOP + source, TOP + target, None, BIND | RECURSIVE)
    _mount(None, TOP + target, None, REMOUNT | BIND | NO_SUID | NO_DEVICES | (READ_ONLY if read_only else 0))


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind)]
    done = _C.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), None if options is None else options.encode())
    _call(f"mount {kind or source or target}", done)


def _call(name: str, result: int) -> None:
    if result < 0:
        raise SandboxRefusedError(f"{name}: {os.strerror(ctypes.get_errno())}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


class Shell:
    """The first process of a sandbox: it keeps one shell for the scripts of an agent, and reaps what ends."""

    def __init__(self, environment: dict[str, str], limits: dict[str, int]) -> None:
        self._environment, self._limits = environment, limits
        self._pid, self._input, self._output, self._control = 0, -1, -1, -1
        self._token, self._unsent = b"", b""
        self._ended: dict[int, int] = {}
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the kernel keeps it from the first process
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def serve(self) -> None:
        """Run the scripts of the input."""
        while True:
            line = sys.stdin.buffer.readline()
            if not line.endswith(b"\n"):
                return
            request = json.loads(line)
            run = self._alone if request["alone"] else self._within
            _say(run(request["script"], request["seconds"]))

    def _alone(self, script: str, seconds: float) -> dict[str, Any]:
        """End whatever runs, and run a script in a shell of its own, in whose work no process can meddle."""
        self._end_all()
        self._forget()
        output = os.pipe()
        pid = self._started(["bash", "-c", script, "script"], {1: output[1], 2: output[1]})
        os.close(output[1])
        told = self._awaited(pid, output[0], -1, seconds)
        os.close(output[0])
        return told

    def _within(self, script: str, seconds: float) -> dict[str, Any]:
        """Run a script in the shell that stays, or in a new one where that has ended."""
        if not self._pid:
            self._open()
        self._token = os.urandom(16).hex().encode()
        self._unsent = TAKE.format(token=self._token.decode()).encode() + script.encode() + b"\0"
        told = self._awaited(self._pid, self._output, self._control, seconds)
        self._unsent = b""
        if told["ended"]:
            self._forget()
        return told

    def _forget(self) -> None:
        """Close what belonged to the shell, which has ended."""
        if self._pid:
            for descriptor in (self._input, self._output, self._control):
                os.close(descriptor)
        self._pid = 0

    def _open(self) -> None:
        ours, output, control = os.pipe(), os.pipe(), os.pipe()
        arguments = ["bash", "--noprofile", "--norc"]
        self._pid = self._started(arguments, {0: ours[0], 1: output[1], 2: output[1], CONTROL: control[1]})
        for end in (ours[0], output[1], control[1]):
            os.close(end)
        self._input, self._output, self._control = ours[1], output[0], control[0]
        os.set_blocking(self._input, False)

    def _started(self, arguments: list[str], descriptors: dict[int, int]) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            empty = os.open("/dev/null", os.O_RDWR)
            high = {number: _high(descriptor) for number, descriptor in ({0: empty} | descriptors).items()}
            for number, descriptor in high.items():
                os.dup2(descriptor, number)
            for name, limit in self._limits.items():
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.chdir("/root")
            os.execve("/usr/bin/bash", arguments, self._environment)
        finally:
            os._exit(127)

    def _awaited(self, pid: int, output: int, control: int, seconds: float) -> dict[str, Any]:
        """Output and status of a script, once it or its shell has ended or its time is over."""
        os.set_blocking(output, False)
        text, heard, until = bytearray(), b"", time.monotonic() + seconds
        watched = [output, *([control] if control >= 0 else [])]
        while True:
            readable, writable, _ = select.select([*watched, 0], [self._input] if self._unsent else [], [], POLL_S)
            if 0 in readable:  # only the end of the input comes while a script runs
                os._exit(0)
            if writable:
                self._send()
            if output in readable and not self._read(output, text):
                watched.remove(output)
            if control in readable:
                part = os.read(control, MAX_BYTES)
                heard = heard[-MAX_REPORT_BYTES:] + part
                status = self._reported(heard)
                if status:
                    self._read(output, text)
                    return _told(status, text, ended=False)
                if not part:
                    watched.remove(control)
                    with suppress(ProcessLookupError):  # the script closed what a shell reports on, or ended it
                        os.kill(pid, signal.SIGKILL)
            self._reap()
            if pid in self._ended:
                self._read(output, text)
                return _told([str(self._ended.pop(pid)).encode()], text, ended=True)
            if time.monotonic() > until:
                self._end_all()
                return _told([], text, ended=True)

    def _send(self) -> None:
        """Write what the shell takes of a script without waiting: a shell that is still busy reads nothing."""
        try:
            self._unsent = self._unsent[os.write(self._input, self._unsent) :]
        except BlockingIOError:
            return
        except OSError:  # the shell has closed its input, and ends at the time limit if it has not ended
            self._unsent = b""

    def _reported(self, heard: bytes) -> list[bytes]:
        """Status that the shell reports for the script that runs: anything else on the descriptor is a script's own.

        A status longer than a shell's is complete before its end comes: a long one comes in parts.
        """
        status, end, _ = heard.partition(self._token + b" ")[2].partition(b"\n")
        return [status] if end or len(status) > LONGEST_STATUS else []

    def _read(self, output: int, text: bytearray) -> bool:
        """Read what is there, and keep no more than ``MAX_BYTES``; False at the end."""
        for _ in range(256):
            try:
                part = os.read(output, 1 << 16)
            except BlockingIOError:
                return True
            if not part:
                return False
            text += part[: max(0, MAX_BYTES - len(text))]
        return True

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                self._ended[found[0]] = os.waitstatus_to_exitcode(found[1])

    def _end_all(self) -> None:
        """Kill every process of the sandbox but this one."""
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        self._ended.clear()


def _high(descriptor: int) -> int:
    """A copy of a descriptor above those that a shell gets."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 20)


def _told(status: list[bytes], text: bytearray, ended: bool) -> dict[str, Any]:
    """Answer about a script; without a status, its time was over. One that no shell reports is None: a script's own."""
    number = status[0] if status else b""
    code = int(number) if len(number) <= LONGEST_STATUS and number.removeprefix(b"-").isdigit() else None
    return {"code": code, "output": text.decode(errors="replace"), "ended": ended, "timed_out": not status}


if __name__ == "__main__":
    main()
