"""Files of a bank: copied while the run may continue, and checked against the manifests."""

import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from coevo.lineage.names import TABLE
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.versioned_store import VersionedBank
from coevo.utilities.errors import CoevoError

VERSIONS = "_versions"
"""Lance's folder of manifests; every other file is written before the manifest that names it, and never changed."""
MANIFESTS = f"{VERSIONS}/*.manifest"

TABLE_FILE = re.compile(rf"{TABLE}\.lance/.+")


def copy_bank(bank: Path, into: Path) -> None:
    """Copy all versions that are complete now: manifests are listed first, so the files that they name exist.

    Lance's hint about the last version is left out: it is the one file that changes.
    """
    manifests = list(bank.glob(f"*/{MANIFESTS}"))
    others = [path for path in bank.rglob("[!.]*") if path.is_file() and path.parent.name != VERSIONS]
    for path in [*manifests, *others]:
        target = into / path.relative_to(bank)
        target.parent.mkdir(parents=True, exist_ok=True)
        # A writer has renamed or removed the file meanwhile; files that a revision needs are checked afterwards.
        with suppress(FileNotFoundError):
            shutil.copyfile(path, target)


def check_bank_files(names: Iterable[str], where: str) -> None:
    """Check that a remote's list of a bank's files names files of tables only.

    Raises:
        CoevoError: it names another file.
    """
    for name in names:
        if not TABLE_FILE.fullmatch(name):
            raise CoevoError(f"remote {where}: its list of the bank's files names {name!r}: do not use this run")


def place_bank(staged: Path, names: Iterable[str], bank: Path) -> None:
    """Move staged files into a bank, manifests last: whenever the process dies, all versions in it are complete."""
    ordered = sorted(names, key=lambda name: (f"/{VERSIONS}/" in name, name))
    for hint in bank.glob(f"*/{VERSIONS}/latest_version_hint.json"):
        hint.unlink()
    for name in ordered:
        target = bank / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (staged / name).replace(target)


def check_tables(bank: VersionedBank, manifests: Iterable[Manifest], where: str) -> None:
    """Check that every table of every revision exists with the recorded content.

    Raises:
        CoevoError: one does not; names table and revision.
    """
    for manifest in manifests:
        found = bank.at(manifest.versions).hashes()
        wrong = sorted(table for table, content in manifest.tables.items() if found.get(table) != content)
        if wrong:
            raise CoevoError(
                f"{where}: table {', '.join(wrong)} of revision {manifest.revision} differs from the record: "
                "restore the run's bank/ from a backup"
            )
