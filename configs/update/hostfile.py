"""Hostfile of the trainer: the machines that share an update, one line ``NAME slots=PROCESSES`` for each."""

import re
from pathlib import Path

from coevo.utilities.errors import CoevoError


def hosts_of(path: Path) -> dict[str, int]:
    """Number of processes on each machine of a hostfile, the machine of process 0 first.

    Raises:
        CoevoError: the file does not exist or names no machine, or one of its lines is malformed.
    """
    hosts: dict[str, int] = {}
    for line in filter(None, _uncommented(path)):
        found = re.fullmatch(r"([A-Za-z0-9][\w.@:-]*)\s+slots=([1-9]\d*)", line)
        if found is None or found[1] in hosts:
            raise CoevoError(f"{path}: {line!r} is malformed or repeated; write NAME slots=N, each name once")
        hosts[found[1]] = int(found[2])
    if not hosts:
        raise CoevoError(f"{path}: it names no machine; write NAME slots=N lines")
    return hosts


def _uncommented(path: Path) -> list[str]:
    """Lines of a hostfile, without comments."""
    try:
        return [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError:
        raise CoevoError(
            f"update.deepspeed.hostfile={str(path)!r} does not exist: name a file of NAME slots=N lines"
        ) from None
