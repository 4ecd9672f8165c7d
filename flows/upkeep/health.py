"""Checks of this machine before a run: each reports one finding, with a remedy if something is wrong."""

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import psutil
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from coevo.configs.threads import usable_cores
from coevo.envs.shipped import SHIPPED
from coevo.flows.console.home import is_known
from coevo.flows.servers.daemon import recorded
from coevo.flows.servers.server_process import ServerError
from coevo.lineage.atomic_files import another, lacking
from coevo.utilities.extras import requirements
from coevo.utilities.free_space import free

OLDEST_GIT = Version("2.32")
MIN_MEMORY_GIB = 3.0
MIN_DISK_GIB = 2.0
GIB = 2**30


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """Result of a check; ``remedy`` is empty if all is well."""

    check: str
    found: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Report whether nothing needs to be done."""
        return not self.remedy


def examine(workspace: Path) -> list[HealthFinding]:
    """Run all checks."""
    return [
        _python(),
        *packages(requirements("train")),
        *_environments(),
        _torch(),
        _git(),
        _cores(),
        _memory(),
        _disk(workspace),
        _writable(workspace),
        _file_system(workspace),
        _user(),
        *_servers(workspace),
    ]


def _python() -> HealthFinding:
    found, wanted = platform.python_version(), metadata("coevo")["Requires-Python"]
    good = SpecifierSet(wanted).contains(found, prereleases=True)
    return HealthFinding("python", found, "" if good else f"install Python {wanted}, then make clean")


def packages(needed: Sequence[Requirement]) -> Iterator[HealthFinding]:
    """Check that requirements are installed: one finding per missing one, or one for all."""
    wrong = [(requirement, _installed(requirement.name)) for requirement in needed if not _satisfied(requirement)]
    for requirement, found in wrong:
        remedy = f"pip install --constraint requirements.lock '{requirement}'"
        yield HealthFinding("packages", f"{requirement.name} {found or 'is missing'}, {requirement} is needed", remedy)
    if not wrong:
        yield HealthFinding("packages", f"{len(needed)} direct requirements, all as pinned")


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _satisfied(requirement: Requirement) -> bool:
    found = _installed(requirement.name)
    return found is not None and requirement.specifier.contains(found, prereleases=True)


def _environments() -> Iterator[HealthFinding]:
    """How many environments are ready, and what each other one lacks; that is no problem of a machine."""
    lacking = {name: each.remedy for name, each in SHIPPED.items() if each.remedy}
    yield HealthFinding("environments", f"{len(SHIPPED) - len(lacking)} of {len(SHIPPED)} ready")
    for name, how in lacking.items():
        yield HealthFinding("environments", f"{name}: {how}")


def _torch() -> HealthFinding:
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return HealthFinding("torch", f"{torch.__version__}, {device}, {torch.get_num_threads()} threads")


def _git() -> HealthFinding:
    program = shutil.which("git")
    if program is None:
        return HealthFinding("git", "is not on PATH", f"install git {OLDEST_GIT} or later")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    release = Version(".".join(said.split(".")[:2]))
    return HealthFinding("git", said, "" if release >= OLDEST_GIT else f"install git {OLDEST_GIT} or later")


def _cores() -> HealthFinding:
    return HealthFinding("cores", str(usable_cores()))


def _memory() -> HealthFinding:
    left = psutil.virtual_memory().available / GIB
    remedy = _unless(left >= MIN_MEMORY_GIB, f"a run takes {MIN_MEMORY_GIB:.0f} GiB: close something")
    return HealthFinding("memory", f"{left:.1f} GiB free", remedy)


def _disk(workspace: Path) -> HealthFinding:
    there = free(workspace) / GIB
    remedy = _unless(
        there >= MIN_DISK_GIB, f"a run takes {MIN_DISK_GIB:.0f} GiB: free some, or name another --workspace"
    )
    return HealthFinding("disk", f"{there:.1f} GiB free", remedy)


def _writable(workspace: Path) -> HealthFinding:
    directory = _existing(workspace)
    try:
        with tempfile.TemporaryFile(dir=directory):
            shared = workspace.is_dir() and workspace.stat().st_mode & 0o077
            others = ", and is open to other users: `chmod 700` keeps them out" if shared else ""
            owner = directory.stat().st_uid
            whose = "" if owner == os.geteuid() else f", and belongs to another user ({owner})"
            return HealthFinding("workspace", f"{workspace} can be written to{whose}{others}")
    except OSError as error:
        return HealthFinding("workspace", f"{directory}: {error.strerror}", "name another directory with --workspace")


def _file_system(workspace: Path) -> HealthFinding:
    try:
        missing = lacking(_existing(workspace))
    except OSError as error:
        return HealthFinding("file system", f"is not known: {error.strerror}")
    if missing is None:
        return HealthFinding("file system", "has links, locks, modes and renames")
    return HealthFinding("file system", f"of {workspace} has no {missing}", another(missing))


def _user() -> HealthFinding:
    name = "" if is_known() else ", without an entry in passwd"
    return HealthFinding("user", f"id {os.geteuid()}{name}, home {os.environ.get('HOME', Path.home())}")


def _servers(workspace: Path) -> Iterator[HealthFinding]:
    try:
        servers = recorded(workspace)
    except ServerError as error:
        found, _, remedy = str(error).partition(": end")
        yield HealthFinding("servers", found, f"end{remedy}")
        return
    for server in servers:
        good = server.runs() and server.answers()
        found = f"{server.name} at {server.url} " + ("answers" if good else "does not answer")
        yield HealthFinding("servers", found, _unless(good, "clear it with `coevo down`; the next run starts another"))
    if not servers:
        yield HealthFinding("servers", "none is recorded; a run starts the servers it needs")


def _existing(path: Path) -> Path:
    return next(directory for directory in (path, *path.parents) if directory.exists())


def _unless(good: bool, remedy: str) -> str:
    return "" if good else remedy
