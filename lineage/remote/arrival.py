"""Fetching a run's content from a remote: everything is verified before any of it is put in place."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from coevo.lineage.objects.content import files_of
from coevo.lineage.objects.pointer import Pointer
from coevo.lineage.remote.bank_tables import check_bank_files, check_tables
from coevo.lineage.remote.bundle import Bundle, Record
from coevo.lineage.remote.meter import Moved
from coevo.lineage.remote.remote_objects import Objects
from coevo.lineage.revision.snapshot import OpenBank
from coevo.lineage.workspace import RunPaths
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True)
class Arrival:
    """Content of a run at a remote, verified and ready to be put in place.

    Attributes:
        bundle: its history.
        record: the record that was pushed with it.
        bank: directory with all files of its bank.
        fresh: names of the files that the workspace lacks or has with other content.
        moved: size of the transfer.
    """

    bundle: Bundle
    record: Record
    bank: Path
    fresh: list[str]
    moved: Moved


def fetch(run: RunPaths, theirs: Bundle, objects: Objects, scratch: Path) -> Arrival:
    """Fetch everything that the workspace lacks: artifacts into the cache, the bank's files into ``scratch``."""
    record = theirs.record()
    roots = theirs.contents()
    moved, lists = objects.fetch_lists({record.bank, *(root for root in roots if root.endswith(".dir"))}, scratch)
    wanted, present = lists.pop(record.bank), files_of(run.bank)
    check_bank_files(wanted, objects.label)
    moved += objects.fetch({*(roots - lists.keys()), *(oid for files in lists.values() for oid in files.values())})
    for content in roots:
        _check_size(theirs.pointers[content], lists.get(content, {".": content}), objects)
    bank = scratch / "bank"
    for name in wanted:
        (bank / name).parent.mkdir(parents=True, exist_ok=True)
    fresh = [name for name, oid in wanted.items() if present.get(name) != oid]
    moved += objects.fetch_files({bank / name: wanted[name] for name in fresh})
    for name in wanted.keys() - set(fresh):
        shutil.copyfile(run.bank / name, bank / name)
    return Arrival(theirs, record, bank, fresh, moved)


def _check_size(pointer: Pointer, files: Mapping[str, str], objects: Objects) -> None:
    """Check that an artifact has the number of files and bytes in its ``.dvc`` file."""
    size = sum(objects.path(oid).stat().st_size for oid in files.values())
    count = None if "." in files else len(files)
    if (size, count) != (pointer.size, pointer.files):
        raise CoevoError(
            f"remote {objects.label}: {pointer.name}.dvc says {pointer.files} files and {pointer.size} bytes, but the "
            f"object {pointer.content} has {count} and {size}: do not use this run"
        )


def check_bank(arrival: Arrival, open_bank: OpenBank, where: str) -> None:
    """Check a fetched bank against the manifests of the run.

    Raises:
        CoevoError: its tables cannot be opened, or have other content than a manifest records.
    """
    try:
        bank = open_bank(arrival.bank)
    except CoevoError as error:
        raise CoevoError(f"{where}: {error}") from None
    check_tables(bank, arrival.bundle.whole(), where)
