"""Files by their content, and lists of files in DVC's format for directories."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from coevo.lineage.names import first_clash, is_inner
from coevo.utilities.errors import CoevoError

FILE = re.compile(r"[0-9a-f]{32}")
LIMIT = 1 << 25
"""Maximum bytes of a list; one row has about a hundred."""


def md5(path: Path) -> str:
    """Content hash of a file by DVC's method (hex)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def check(path: Path, oid: str) -> None:
    """Check that a file has the content that its name in the cache states.

    Raises:
        CoevoError: it is missing, or has other content.
    """
    if not path.is_file():
        raise CoevoError(f"{path} is missing: restore the run from a backup, or pull it from a remote that has it")
    if md5(path) != oid.removesuffix(".dir"):
        raise CoevoError(f"{path} does not match its name: remove it, and pull the run from a remote that has it")


def files_of(root: Path) -> dict[str, str]:
    """Every file below a directory: {relative path: content hash}."""
    return {path.relative_to(root).as_posix(): md5(path) for path in sorted(root.rglob("*")) if path.is_file()}


def write_list(files: Mapping[str, str], path: Path) -> str:
    """Write a list of files in DVC's format for a directory; return its content hash."""
    rows = [{"md5": files[name], "relpath": name} for name in sorted(files)]
    path.write_text(json.dumps(rows, sort_keys=True), encoding="utf-8")
    return f"{md5(path)}.dir"


def read_list(path: Path) -> dict[str, str]:
    """Inverse of ``write_list``.

    Raises:
        CoevoError: it is not such a list, or it names something that cannot be a file below its directory.
    """
    try:
        if path.stat().st_size > LIMIT:
            raise CoevoError(f"{path} has more than {LIMIT} bytes, too many for a list of files: remove it")
        rows = json.loads(path.read_bytes())
        files = {row["relpath"]: row["md5"] for row in rows if row.keys() == {"relpath", "md5"}}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _wrong(path) from None
    if not isinstance(rows, list) or len(files) != len(rows):
        raise _wrong(path)
    _check(path, files)
    return files


def _check(path: Path, files: Mapping[str, object]) -> None:
    strangers = [name for name in files if not is_inner(name)]
    if strangers:
        raise CoevoError(
            f"{path} names {str(strangers[0])[:100]!r}, a file outside of its directory or a hidden one: do not use "
            "this remote"
        )
    if any(not isinstance(oid, str) or not FILE.fullmatch(oid) for oid in files.values()):
        raise _wrong(path)
    clash = first_clash(files)
    if clash is not None:
        raise CoevoError(f"{path} names {clash[:100]!r} as a file and as a directory: do not use this remote")


def _wrong(path: Path) -> CoevoError:
    return CoevoError(f"{path} is not a list of files: remove it, and repeat the command")
