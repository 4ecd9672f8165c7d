"""The bank beside the manifests: every table version of a revision that is kept, and the latest beside the head."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from lineage.findings import Finding, lost, mendable
from lineage.fsck.history import Revision
from memory.fsck import Fault, faults, stale

REMEDY = "copy the run's bank/ back from a backup, or pull the run from a remote into a new workspace (`coevo pull`)"


def check_versions(bank: Path, kept: Sequence[Revision], run: str) -> list[Finding]:
    """A finding for each table version of these revisions that cannot be read or has other content."""
    users: dict[tuple[str, int], list[int]] = defaultdict(list)
    wanted: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for revision in kept:
        manifest = revision.manifest
        for table, content in manifest.tables.items():
            users[table, manifest.versions[table]].append(revision.number)
            wanted[table].add((manifest.versions[table], content))
    return [_finding(fault, users, run) for fault in faults(bank, wanted)]


def check_latest(bank: Path, head: Revision, versions: Sequence[Finding], run: str) -> Iterator[Finding]:
    """Tables whose latest content is not the head's; ``versions``: what ``check_versions`` found of the same run."""
    for fault in stale(bank, head.manifest.tables):
        version = head.manifest.versions[fault.table]
        broken = (_named(fault.table), _named(fault.table, version))
        if not any(finding.problem.startswith(broken) for finding in versions):
            yield mendable(f"{run}@{head.number}", f"{_named(fault.table)} {fault.problem}", "restores the table")


def _finding(fault: Fault, users: dict[tuple[str, int], list[int]], run: str) -> Finding:
    if fault.version is None:
        return lost(run, f"{_named(fault.table)} {fault.problem}", REMEDY)
    numbers = users[fault.table, fault.version]
    needed = ", ".join(map(str, numbers))
    what = f"{_named(fault.table, fault.version)} of revision {needed} {fault.problem}"
    return lost(f"{run}@{numbers[0]}", what, REMEDY)


def _named(table: str, version: int | None = None) -> str:
    return f"bank table {table} " + ("(latest)" if version is None else f"version {version}")
