"""Check of the bank against the manifests: every table version of a kept revision, and the latest against the head."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from coevo.lineage.findings import Finding, lost, mendable
from coevo.lineage.fsck.history_check import Revision
from coevo.lineage.remote.banks import RemoteBanks
from coevo.lineage.revision.retention import ranges
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.repair_tables import Donor, find_mend, related
from coevo.memory.bank.repair_tables import place as put
from coevo.memory.bank.table_check import TableFault, faults, stale
from coevo.utilities.errors import CoevoError

ELSEWHERE = "`coevo fsck --repair --from REMOTE` if it was pushed, a backup of the run's bank/"
Recorded = Mapping[str, set[tuple[int, str]]]
"""Versions that revisions need, by table, each with its content hash."""


class BankCheck:
    """Check of one run's bank against its kept revisions."""

    def __init__(self, bank: Path, kept: Sequence[Revision], run: str, donors: Sequence[Donor]) -> None:
        """Args:
        bank: directory of the tables.
        kept: kept revisions.
        run: name of the run.
        donors: other banks that may have copies of damaged files.
        """
        self._bank = bank
        self._run = run
        self._donors = donors
        self._kept = kept
        self._users: dict[tuple[str, int], list[int]] = defaultdict(list)
        self._recorded: dict[str, set[tuple[int, str]]] = defaultdict(set)
        for revision in kept:
            manifest = revision.manifest
            for table, content in manifest.tables.items():
                self._users[table, manifest.versions[table]].append(revision.number)
                self._recorded[table].add((manifest.versions[table], content))

    @classmethod
    def of(cls, workspace: Workspace, paths: RunPaths, kept: Sequence[Revision], remote: RemoteBanks | None) -> Self:
        """Check of a run's bank, with the banks of other runs and of a remote as donors."""
        others = [other.bank for other in workspace.directories() if other.name != paths.name]
        donors: list[Donor] = [] if remote is None else [remote.of(paths.name)]
        return cls(paths.bank, kept, paths.name, [*related(paths.bank, others), *donors])

    def versions(self) -> list[Finding]:
        """Findings, one per needed table version that cannot be read or has other content."""
        found = faults(self._bank, self._recorded)
        mended = {name: self._mended(name) for name in {fault.table for fault in found}}
        broken = {(name, version) for name in mended for version in self._broken(found, name)}
        left = {(name, version) for name, version in broken if version not in mended[name]}
        return [self._finding(fault, left) for fault in found]

    def mend(self, scratch: Path) -> None:
        """Repair tables from other banks; tables that cannot be repaired are left for the check that follows."""
        for table in sorted({fault.table for fault in faults(self._bank, self._recorded)}):
            with suppress(CoevoError):
                found = find_mend(self._bank, table, self._recorded[table], self._donors)
                put(self._bank, found, self._recorded[table], scratch)

    def _broken(self, found: Sequence[TableFault], table: str) -> set[int]:
        """Versions of a table that differ from their record; all of them if the table is missing."""
        if not (self._bank / f"{table}.lance").is_dir():
            return {version for version, _ in self._recorded[table]}
        return {fault.version for fault in found if fault.table == table and fault.version is not None}

    def _mended(self, table: str) -> frozenset[int]:
        return find_mend(self._bank, table, self._recorded[table], self._donors).versions

    def _finding(self, fault: TableFault, left: set[tuple[str, int]]) -> Finding:
        """Finding for a fault; ``left``: table versions that cannot be repaired."""
        if fault.version is None:
            last = (fault.table, self._kept[-1].manifest.versions[fault.table])
            return self._judged(self._run, f"{_named(fault.table)} {fault.problem}", last in left, left)
        numbers = self._users[fault.table, fault.version]
        needed = ", ".join(map(str, numbers))
        what = f"{_named(fault.table, fault.version)} of revision {needed} {fault.problem}"
        return self._judged(f"{self._run}@{numbers[0]}", what, (fault.table, fault.version) in left, left)

    def _judged(self, subject: str, what: str, beyond: bool, left: set[tuple[str, int]]) -> Finding:
        if not beyond:
            return mendable(subject, what, "takes it from a copy that is still right")
        return lost(subject, what, f"no other copy is here: {ELSEWHERE}; {self._remaining(left)}")

    def _remaining(self, left: set[tuple[str, int]]) -> str:
        """Commands that still work with the rest of the bank."""
        gone = {number for needed in left for number in self._users[needed]}
        whole = [revision.number for revision in self._kept if revision.number not in gone]
        if not whole:
            return "the bank of no revision is whole"
        said = f"the bank of revision {ranges(whole)} is whole"
        if whole[-1] == self._kept[-1].number:
            return f"{said}, so `coevo resume {self._run}` continues"
        return f"{said}: `coevo rollback {self._run} --to {whole[-1]}`"


def check_latest(bank: Path, head: Revision, versions: Sequence[Finding], run: str) -> Iterator[Finding]:
    """Findings for tables whose latest content differs from the head's; ``versions``: findings of ``BankCheck``."""
    for fault in stale(bank, head.manifest.tables):
        version = head.manifest.versions[fault.table]
        broken = (_named(fault.table), _named(fault.table, version))
        if not any(finding.problem.startswith(broken) for finding in versions):
            yield mendable(f"{run}@{head.number}", f"{_named(fault.table)} {fault.problem}", "restores the table")


def _named(table: str, version: int | None = None) -> str:
    return f"bank table {table} " + ("(latest)" if version is None else f"version {version}")
