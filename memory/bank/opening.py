"""Opening the tables of a bank, any file of which may be damaged.

Lance reads the newest manifest whichever version it opens, and blocks on a pipe. Therefore files are checked before
Lance opens them, and a version is read from a temporary mirror if the newest manifest prevents opening the table.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

from coevo.memory.bank.bank_address import BankAddress, BankPath, connect
from coevo.memory.bank.change import SCHEMAS
from coevo.memory.bank.lance_errors import UnreadableError, readable
from coevo.memory.bank.lance_files import Version, belonging, manifest_name, manifests, mirror, read_version
from coevo.utilities.errors import CoevoError

HINT = "_versions/latest_version_hint.json"
"""Lance's note of the newest version; tables without it can be opened, too."""
ASIDE = "_damaged"
"""Folder of a table for damaged manifests; Lance ignores it."""


def existing(bank: BankPath, name: str) -> BankPath:
    """Directory of a table, else ``FileNotFoundError``: connecting to a missing directory would create it."""
    table = bank / f"{name}.lance"
    if name not in SCHEMAS or not table.is_dir():
        raise FileNotFoundError(f"{table} does not exist")
    return table


def open_table(bank: BankPath, name: str) -> Any:
    """Open a Lance table at its newest version; a missing table is not created.

    Raises:
        UnreadableError: the table is missing or cannot be opened.
    """
    with readable(name):
        require_openable(existing(bank, name))
        return connect(bank).open_table(name)


def open_version(bank: BankPath, name: str, version: int) -> Any:
    """Open one version of a Lance table, read-only, even if other versions are damaged.

    Raises:
        CoevoError: the version is missing.
        UnreadableError: the table is missing, or this version cannot be opened.
    """
    require_version(bank, name, version)
    with readable(name, version):
        require_files(bank, name, version)
    try:
        with readable(name):
            opened = open_table(bank, name)
            opened.checkout(version)
            return opened
    except UnreadableError:
        return _alone(bank, name, version)


def require_openable(table: BankPath) -> None:
    """Make sure that opening a table does not block.

    Raises:
        OSError: a file that Lance reads first is not a regular file.
    """
    if not isinstance(table, Path):
        return
    for name in [HINT, *manifests(table)[:1]]:
        _require_file(table / name)


def require_version(bank: BankPath, name: str, version: int) -> None:
    """Make sure that a version exists.

    Raises:
        CoevoError: the version is missing.
        UnreadableError: the table is missing.
    """
    if not (bank / f"{name}.lance" / manifest_name(version)).exists():
        with readable(name):
            existing(bank, name)
        raise CoevoError(
            f"bank table {name}: version {version} is gone, so its revision cannot be read: "
            "copy the run's bank/ back from a backup, or choose another revision"
        )


def require_files(bank: BankPath, name: str, version: int) -> Version | None:
    """Make sure that reading a version does not block, which no object on S3 does; return what it consists of here.

    Raises:
        OSError: a needed file is not a regular file, or the table is missing.
        ValueError: the manifest is damaged.
    """
    if not isinstance(bank, Path):
        return None
    table = existing(bank, name)
    assert isinstance(table, Path)
    try:
        needed = read_version(table / manifest_name(version))
    except CoevoError:
        raise ValueError(f"the manifest of version {version} is damaged") from None
    for stem in needed.read:
        _require_file(table / stem)
    return needed


def set_aside(bank: BankPath, name: str) -> None:
    """Move files that prevent opening a table into a folder of it that Lance ignores.

    These are the newest manifests, as far as they cannot be opened, and a hint that is not a regular file.
    """
    table = existing(bank, name)
    if isinstance(table, Path) and (table / HINT).exists() and not (table / HINT).is_file():
        _move_aside(table, HINT)
    for manifest in manifests(table):
        try:
            _alone(bank, name, _number(manifest))
        except UnreadableError:
            _move_aside(table, manifest)
        else:
            return


def _alone(bank: BankPath, name: str, version: int) -> Any:
    """Open a version from a temporary directory, which is removed with the handle."""
    table, manifest = existing(bank, name), manifest_name(version)
    scratch = TemporaryDirectory(prefix="coevo-")
    with readable(name):
        if isinstance(table, Path):
            _link_version(table, Path(scratch.name) / table.name, manifest)
        else:
            _copy_version(table, Path(scratch.name) / table.name, manifest)
        opened = connect(Path(scratch.name)).open_table(name)
    finalize(opened, scratch.cleanup)
    return opened


def _link_version(table: Path, into: Path, manifest: str) -> None:
    _require_file(table / manifest)
    mirror(table, into, [manifest])
    for folder in ("data", "_deletions"):
        (into / folder).symlink_to((table / folder).absolute())


def _copy_version(table: BankAddress, into: Path, manifest: str) -> None:
    """Copy the files that reading a version needs.

    Raises:
        ValueError: the manifest is damaged.
    """
    for folder in ("_versions", "data", "_deletions"):
        (into / folder).mkdir(parents=True)
    (table / manifest).copy_to(into / manifest)
    try:
        version = read_version(into / manifest)
    except CoevoError:
        raise ValueError(f"{manifest} is damaged") from None
    for folder in ("data", "_deletions"):
        for name in belonging((f"{folder}/{file}" for file in (table / folder).names()), [version]):
            (table / name).copy_to(into / name)


def _require_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no regular file")


def _number(manifest: str) -> int:
    stem = Path(manifest).stem
    return int(Path(manifest_name(int(stem))).stem) if stem.isdecimal() else -1


def _move_aside(table: BankPath, name: str) -> None:
    aside = Path(name).name
    while (table / ASIDE / aside).exists():
        aside = f"{aside}.1"
    source, target = table / name, table / ASIDE / aside
    if isinstance(source, Path) and isinstance(target, Path):
        target.parent.mkdir(exist_ok=True)
        source.rename(target)
    elif isinstance(source, BankAddress) and isinstance(target, BankAddress):
        source.move(target)
