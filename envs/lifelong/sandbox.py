"""Sandboxes: a root of a few commands and their libraries, in which scripts run without a way to this machine.

Nothing of the host is in it but those files. Nobody there can change or replace them, nor the folders that a shell, its
commands and the loader of libraries look into. ``sandbox_init`` is the program inside.
"""

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import Launch, ServerProcess

SCRIPT_SECONDS = 8.0
"""Seconds that a script may take; then every process of its sandbox is ended."""
START_SECONDS, MARGIN_SECONDS = 30.0, 20.0
"""Seconds that a sandbox has to start, and to answer beyond those of a script."""
MAX_SCRIPT_BYTES = 20_000
PROGRAM = Path(__file__).with_name("sandbox_init.py")
FOLDERS = ("/usr/sbin", "/usr/bin")
COMMANDS = (
    "basename", "bash", "cat", "chgrp", "chmod", "chown", "cksum", "comm", "cp", "cut", "date", "dd", "df", "diff",
    "dirname", "du", "echo", "env", "expr", "false", "find", "grep", "egrep", "head", "id", "install", "join",
    "kill", "ln", "ls", "md5sum", "mkdir", "mktemp", "mv", "nl", "nohup", "paste", "pr", "printf", "pwd",
    "readlink", "realpath", "rm", "rmdir", "sed", "seq", "setsid", "sha256sum", "sleep", "sort", "split", "stat",
    "tac", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true", "truncate", "tsort", "uname", "uniq",
    "wc", "whoami", "xargs", "yes", "awk", "gzip", "gunzip", "groups", "pgrep", "pkill",
)  # fmt: skip
ACCOUNT_COMMANDS = (
    "useradd", "usermod", "userdel", "groupadd", "groupmod", "groupdel", "gpasswd", "chage", "chsh", "passwd",
    "chpasswd", "getent",
)  # fmt: skip
NEEDED = ("bash", "cat", "chmod", "cp", "find", "grep", "ls", "mkdir", "mv", "rm", "sed", "sort", "wc", "awk", "ln")
DAY = 1_767_225_600
"""Time that commands see, in seconds: 2026-01-01."""
ENVIRONMENT = {
    "PATH": ":".join(FOLDERS), "HOME": "/root", "USER": "root", "SHELL": "/bin/bash", "LANG": "C.UTF-8", "TZ": "UTC",
    "TIME_STYLE": "+2026-01-01 00:00", "SOURCE_DATE_EPOCH": str(DAY),
}  # fmt: skip
LIMITS = {
    "NPROC": 48, "AS": 512 << 20, "DATA": 64 << 20, "FSIZE": 16 << 20, "NOFILE": 256, "CPU": 60, "CORE": 0,
    "MEMLOCK": 0, "MSGQUEUE": 0,
}  # fmt: skip
"""Limits of the processes of a sandbox, of all of them together where they count processes."""
BYTES, FILES = "32m", 8_000
"""Size of a sandbox's files, and most of them."""
_PAM = "auth sufficient pam_permit.so\naccount sufficient pam_permit.so\npassword sufficient pam_permit.so\n"
_TEXTS: dict[str, tuple[int, str]] = {
    "/etc/passwd": (0o644, "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"),
    "/etc/group": (0o644, "root:x:0:\nsudo:x:27:\nusers:x:100:\nnogroup:x:65534:\n"),
    "/etc/shadow": (0o640, "root:*:20454:0:99999:7:::\nnobody:*:20454:0:99999:7:::\n"),
    "/etc/gshadow": (0o640, "root:*::\nsudo:*::\nusers:*::\nnogroup:*::\n"),
    "/etc/shells": (0o644, "/bin/sh\n/bin/bash\n/usr/bin/bash\n"),
    "/etc/nsswitch.conf": (0o644, "passwd: files\ngroup: files\nshadow: files\ngshadow: files\n"),
    "/etc/login.defs": (0o644, "UID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nUSERGROUPS_ENAB yes\n"
        "UMASK 022\nHOME_MODE 0755\nENCRYPT_METHOD SHA512\nPASS_MAX_DAYS 99999\nPASS_MIN_DAYS 0\nPASS_WARN_AGE 7\n"),
    "/etc/default/useradd": (0o644, "SHELL=/bin/sh\nHOME=/home\nSKEL=/etc/skel\nCREATE_MAIL_SPOOL=no\n"),
    "/etc/ld.so.preload": (0o644, ""), "/etc/ld.so.cache": (0o644, ""),
    **{f"/etc/pam.d/{name}": (0o644, _PAM) for name in ("other", "chage", "chsh", "passwd", "useradd", "usermod")},
    "/usr/sbin/addgroup": (0o755, "#!/bin/bash\nif [ $# -eq 2 ] && [ \"${1#-}\" = \"$1\" ]\nthen exec usermod -aG "
        "\"$2\" \"$1\"\nfi\nargs=()\nfor each in \"$@\"\ndo [ \"$each\" = --system ] && each=-r\nargs+=(\"$each\")\n"
        "done\nexec groupadd \"${args[@]}\"\n"),
}  # fmt: skip
_FROZEN = f'#!/bin/bash\nexec /usr/libexec/date --date=@{DAY} "$@"\n'
"""Script in place of ``date``: a clock would make an episode differ from its repetition."""
_MOUNTS = {
    "/etc/ld.so.preload": ("/etc/ld.so.preload", True), "/etc/ld.so.cache": ("/etc/ld.so.cache", True),
    "/etc/nsswitch.conf": ("/etc/nsswitch.conf", True), "/etc/pam.d": ("/etc/pam.d", True), "/etc": ("/etc", False),
    "/usr/local": ("/usr/local", False), "/usr": ("/usr", True), "/bin": ("/usr/bin", True),
    "/sbin": ("/usr/sbin", True), "/lib": ("/lib", True), "/lib64": ("/lib64", True), "/dev": ("/dev", True),
}  # fmt: skip
"""Mounts of a sandbox, with their sources, and whether they are read-only: all that decides which program runs."""
ALLOW = "allow namespaces (sysctl user.max_user_namespaces), or leave the container that forbids them"
_DEVICES = ("null", "zero", "full", "random", "urandom")


class ScriptResult(NamedTuple):
    """Result of a script.

    Attributes:
        code: exit status; None if its time was over.
        output: what it wrote, at most 64 KiB.
        ended: True if its shell has ended with it.
        timed_out: True if its time was over.
    """

    code: int | None
    output: str
    ended: bool
    timed_out: bool


class SandboxError(CoevoError):
    """A sandbox that could not be started, or that has ended."""


class Sandbox:
    """A running sandbox; it ends with ``close``, and with this process, however that ends.

    Args:
        accounts: whether it has users and groups of its own, which only root can map.
        empty: whether its root is empty, to find out if the system allows a sandbox.

    Raises:
        SandboxError: the system refuses it, in one line.
    """

    def __init__(self, accounts: bool = True, empty: bool = False) -> None:
        command = [sys.executable, "-I", "-S", str(PROGRAM)]
        nothing = Path(os.devnull)
        self._process = ServerProcess(Launch(command, {}, nothing, "/", leash=True, replies=True, withheld=("",)))
        try:
            told = self._ask(_bare(accounts) if empty else _plan(accounts), START_SECONDS)
            if "refused" in told:
                raise SandboxError(f"{told['refused']}")
        except BaseException:
            self.close()
            raise

    def run(self, script: str, seconds: float = SCRIPT_SECONDS, alone: bool = False) -> ScriptResult:
        """Run a script in the shell that stays; or ``alone``, in one of its own, after all that still runs was ended.

        Raises:
            SandboxError: the sandbox has ended.
        """
        request = {"script": script.replace("\0", ""), "seconds": seconds, "alone": alone}
        return ScriptResult(**self._ask(request, seconds + MARGIN_SECONDS))

    @property
    def pid(self) -> int:
        """Id of the process that holds the sandbox."""
        return self._process.pid

    def close(self) -> None:
        """End the sandbox and everything in it."""
        self._process.close()

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        # The process inside is killed just after its holder: until then it can still answer.
        if not self._process.runs():
            raise SandboxError("the sandbox has ended")
        try:
            self._process.write(json.dumps(request).encode() + b"\n", seconds)
            line = self._process.line(seconds)
        except TimeoutError:
            line = None
        except (BrokenPipeError, ValueError) as error:
            raise SandboxError("the sandbox has ended") from error
        if line is None:
            raise SandboxError(f"the sandbox did not answer in {seconds:.0f} s")
        if not line.endswith(b"\n"):
            raise SandboxError("the sandbox has ended")
        told: dict[str, Any] = json.loads(line)
        return told


@lru_cache(maxsize=2)
def refusal(accounts: bool = True) -> str:
    """One line that says why no sandbox can be started here, with a remedy; empty if one can."""
    missing = [] if sys.platform == "linux" else ["Linux"]
    missing += [name for name in (*NEEDED, *(ACCOUNT_COMMANDS if accounts else ())) if not _path(name)]
    if missing:
        return f"the sandbox needs {', '.join(missing)}: install what is missing (Debian: bash, coreutils, passwd)"
    try:
        Sandbox(accounts, empty=True).close()
    except SandboxError as error:
        fewer = accounts and not refusal(accounts=False)
        remedy = "run as root, or set env.options.kinds=[files]" if fewer else ALLOW
        return f"the system refuses the sandbox ({error}): {remedy}"
    return ""


@lru_cache(maxsize=2)
def _plan(accounts: bool) -> dict[str, Any]:
    """Root of a sandbox, as ``sandbox_init`` reads it."""
    names = (*COMMANDS, *(ACCOUNT_COMMANDS if accounts else ()))
    programs = {name: path for name in names if (path := _path(name))}
    binds = {f"{_folder(name)}/{name}": str(path.resolve()) for name, path in programs.items()}
    binds["/usr/libexec/date"] = binds.pop("/usr/bin/date")
    binds |= _libraries(list(binds.values()))
    binds |= {f"/dev/{name}": f"/dev/{name}" for name in _DEVICES}
    folders = {"/tmp": 0o1777, "/root": 0o700, "/home": 0o755, "/etc/skel": 0o755, "/run": 0o755}
    folders |= dict.fromkeys((*FOLDERS, "/srv", "/opt", "/var/log", "/var/tmp", "/mnt", "/etc/pam.d"), 0o755)
    folders |= dict.fromkeys(("/usr/local/bin", "/usr/lib", "/usr/lib64", "/bin", "/sbin", "/lib", "/lib64"), 0o755)
    links = {"/usr/bin/sh": "bash", "/dev/fd": ".kernel/proc/self/fd"}
    texts = {**_TEXTS, "/usr/bin/date": (0o755, _FROZEN)}
    tops = (f"/{target.split('/')[1]}" for target in binds)
    mounts = {**_MOUNTS, **{top: (top, True) for top in tops if top not in _MOUNTS}}
    return _bare(accounts) | {"folders": folders, "binds": binds, "links": links, "texts": texts, "mounts": mounts}


def _bare(accounts: bool) -> dict[str, Any]:
    """An empty root."""
    return {
        "accounts": accounts, "bytes": BYTES, "files": FILES, "folders": {}, "binds": {}, "links": {},
        "texts": {}, "mounts": {}, "environment": ENVIRONMENT, "limits": LIMITS,
    }  # fmt: skip


def _libraries(programs: list[str]) -> dict[str, str]:
    """Libraries that programs load, and the modules of PAM that let the root of a sandbox in, by their paths."""
    # The programs are the system's own; ldd reads what they need from the loader.
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    words = (line.split("=>")[-1].split() for line in listed.splitlines() if "(0x" in line)
    found = {each[0]: str(Path(each[0]).resolve()) for each in words if each and each[0].startswith("/")}
    folder = next((Path(path).parent for path in found if Path(path).name.startswith("libpam.so")), None)
    if folder is not None and (folder / "security" / "pam_permit.so").exists():
        found[f"{folder}/security/pam_permit.so"] = str((folder / "security" / "pam_permit.so").resolve())
    return found


def _path(name: str) -> Path | None:
    found = which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")
    return None if found is None else Path(found)


def _folder(name: str) -> str:
    return FOLDERS[0] if name.endswith(("add", "mod", "del", "chpasswd")) else FOLDERS[1]
