"""Repair of a bank: replacements for damaged or missing files, taken from another bank that has them.

The bytes of files are not recorded, but the content of tables is. A copy of a file is therefore right if more versions
have their recorded content with it, and none loses it. This is tried on links before any file is replaced.
"""

import filecmp
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from coevo.memory.bank.lance_files import files, manifest_name, manifests, mirror, read_version
from coevo.memory.bank.table_check import faults
from coevo.utilities.errors import CoevoError

RecordedVersions = Collection[tuple[int, str]]
"""Versions of a table, each with its recorded content hash."""


class Donor(Protocol):
    """Another bank."""

    def file(self, table: str, name: str) -> Path | None:
        """Return its copy of a file, named relative to the table; None if it has none."""
        ...


@dataclass(frozen=True)
class Mend:
    """Files that repair a table.

    Attributes:
        table: name of the table.
        files: copy for each file to replace, by the file's name relative to the table.
        versions: versions that have their recorded content again.
    """

    table: str
    files: Mapping[str, Path]
    versions: frozenset[int]


@dataclass(frozen=True)
class OtherBank:
    """The bank of another run.

    Attributes:
        path: directory of its tables.
    """

    path: Path

    def file(self, table: str, name: str) -> Path | None:
        """Return its own file."""
        path = self.path / f"{table}.lance" / name
        return path if path.is_file() else None


def related(bank: Path, others: Iterable[Path]) -> list[Donor]:
    """Banks that share files with this one, such as those of branches."""
    own = _shareable(bank)
    return [OtherBank(other) for other in others if own & _shareable(other)]


def find_mend(bank: Path, table: str, recorded: RecordedVersions, donors: Sequence[Donor]) -> Mend:
    """Find files of other banks that repair a table; nothing is changed.

    Args:
        bank: directory of the tables.
        table: name of the table to repair.
        recorded: recorded versions of the table.
        donors: other banks, tried in order.
    """
    search = _Search(bank, table, recorded)
    before = search.broken
    for donor in donors:
        search.ask(donor)
    return Mend(table, search.chosen, before - search.broken)


def place(bank: Path, mend: Mend, recorded: RecordedVersions, scratch: Path) -> None:
    """Put the copies in place, each by rename, manifests last.

    Args:
        bank: directory of the tables.
        mend: result of ``find_mend``.
        recorded: recorded versions of the table.
        scratch: temporary directory on the bank's disk; removed afterwards.

    Raises:
        CoevoError: the copies have changed since the search, or the bank's folders are links to another place.
    """
    table = bank / f"{mend.table}.lance"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        copies = {name: _copied(source, scratch / name) for name, source in mend.files.items()}
        # Check the copies, not their sources: these may have changed since the search.
        if mend.versions & _broken(bank, mend.table, recorded, copies):
            raise CoevoError(f"bank table {mend.table}: the copies to repair it with have changed: repeat the command")
        for name in sorted(copies, key=lambda name: (name.startswith("_versions/"), name)):
            _replace(table, name, copies[name])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Search:
    """Search for copies that repair one table.

    Attributes:
        chosen: copies so far, by the name of the file that they replace.
        broken: versions without their recorded content, even with these copies.
    """

    def __init__(self, bank: Path, table: str, recorded: RecordedVersions) -> None:
        self._bank = bank
        self._table = table
        self._recorded = sorted(recorded)
        self.chosen: dict[str, Path] = {}
        self.broken = _broken(bank, table, self._recorded, self.chosen)

    def ask(self, donor: Donor) -> None:
        """Choose files of a donor that repair versions and break none."""
        for version, content in self._recorded:
            if version in self.broken:
                offers = _offers(self._bank / f"{self._table}.lance", self._table, version, donor)
                _ = any(self._takes(offer, (version, content)) for offer in offers)

    def _takes(self, offer: Mapping[str, Path], wanted: tuple[int, str]) -> bool:
        trial = {**self.chosen, **offer}
        # One version is read quickly, and most offers do not even repair that one.
        if _broken(self._bank, self._table, [wanted], trial):
            return False
        left = _broken(self._bank, self._table, self._recorded, trial)
        if not left < self.broken:
            return False
        self.chosen, self.broken = trial, left
        return True


def _offers(path: Path, table: str, version: int, donor: Donor) -> Iterator[dict[str, Path]]:
    """Files of a version that differ in the donor, by our own manifest and by the donor's."""
    name = manifest_name(version)
    theirs = donor.file(table, name)
    for manifest, own in ((path / name, {}), (theirs, {name: theirs})):
        try:
            needed = read_version(manifest).read if manifest is not None else []
        except CoevoError:
            continue
        offered = ((stem, donor.file(table, stem)) for stem in needed)
        more = {stem: copy for stem, copy in offered if copy is not None and _differs(path / stem, copy)}
        more |= {stem: copy for stem, copy in own.items() if copy is not None and _differs(path / stem, copy)}
        if more:
            yield more


def _differs(file: Path, copy: Path) -> bool:
    return not file.is_file() or not filecmp.cmp(file, copy, shallow=False)


def _broken(bank: Path, table: str, recorded: RecordedVersions, instead: Mapping[str, Path]) -> frozenset[int]:
    """Versions without their recorded content if these files replace their originals."""
    path = bank / f"{table}.lance"
    with TemporaryDirectory(prefix="coevo-") as scratch:
        mirror(path, Path(scratch) / path.name, [*files(path), *manifests(path)], instead)
        if not (Path(scratch) / path.name).is_dir():
            return frozenset(version for version, _ in recorded)
        found = faults(Path(scratch), {table: recorded})
    return frozenset(fault.version for fault in found if fault.version is not None)


def _shareable(bank: Path) -> set[str]:
    """Names of files that Lance makes unique."""
    return {path.name for folder in ("data", "_transactions") for path in bank.glob(f"*.lance/{folder}/*")}


def _copied(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as read, target.open("wb") as written:
        shutil.copyfileobj(read, written)
        written.flush()
        os.fsync(written.fileno())
    return target


def _replace(table: Path, name: str, copy: Path) -> None:
    target = table / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.parent.resolve() != table.parent.resolve() / table.name / Path(name).parent:
        raise CoevoError(f"{target.parent} is a link to another place: put the bank's own folder there, and repeat")
    if target.is_dir() and not target.is_symlink():
        target.rename(copy.with_name(f"{copy.name}.was"))
    copy.replace(target)
