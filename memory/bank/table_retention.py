"""Old versions of a bank: files that only they need, and a copy of a bank with selected versions.

Before a file counts as surplus, the other files are linked into a mirror, and every kept version is read there. This
proves the list of files that ``files`` derives from the manifests, each time.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from coevo.memory.bank.lance_files import belonging, files, manifest_name, read_version, versions
from coevo.memory.bank.opening import require_version
from coevo.memory.bank.table import RecordedTable
from coevo.utilities.errors import CoevoError

KeptVersions = Mapping[str, Mapping[int, str]]
"""Kept versions by table, each with its content hash."""


def surplus(bank: Path, kept: KeptVersions) -> list[Path]:
    """Files that neither a kept version nor the latest one of its table needs; manifests first."""
    return [path for name in kept for path in _surplus(bank / f"{name}.lance", set(kept[name]))]


def copy(bank: Path, into: Path, kept: KeptVersions) -> None:
    """Make a bank of the kept versions; the highest becomes the latest. Files that never change are linked.

    Raises:
        CoevoError: a version is missing, or its content differs from the record.
    """
    for name, wanted in kept.items():
        _link(bank / f"{name}.lance", into / f"{name}.lance", set(wanted))
    _prove(into, kept)


def prove(bank: Path, kept: KeptVersions, scratch: Path) -> None:
    """Make sure that every kept version stays readable, and equal, without the surplus.

    Raises:
        CoevoError: a version would not, or already is not.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        for name, wanted in kept.items():
            latest = {version.number for version in versions(bank / f"{name}.lance")[-1:]}
            _link(bank / f"{name}.lance", scratch / f"{name}.lance", set(wanted) | latest)
        _prove(scratch, kept)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _surplus(table: Path, wanted: set[int]) -> list[Path]:
    present, names = versions(table), files(table)
    numbers = wanted | {version.number for version in present[-1:]}
    manifests = [version.manifest for version in present if version.number not in numbers]
    staying = {*belonging(names, (version for version in present if version.number in numbers))}
    return [*manifests, *(table / name for name in names if name not in staying)]


def _link(table: Path, into: Path, wanted: set[int]) -> None:
    for number in wanted:
        require_version(table.parent, table.stem, number)
    staying = [read_version(table / manifest_name(number)) for number in sorted(wanted)]
    for name in [
        *belonging(files(table), staying),
        *(version.manifest.relative_to(table).as_posix() for version in staying),
    ]:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(table / name, into / name)
        except OSError:
            shutil.copy2(table / name, into / name)


def _prove(bank: Path, kept: KeptVersions) -> None:
    for name, wanted in kept.items():
        for version, content in wanted.items():
            found = RecordedTable(bank, name, version).hash()
            if found != content:
                raise CoevoError(_lost(name, version, f"its content is {found[:12]}, recorded is {content[:12]}"))


def _lost(table: str, version: int, why: str) -> str:
    return f"bank table {table}: version {version} cannot be read: {why}; bring bank/ back from a copy"
