"""The cache's objects, read and compared with the hashes that name them: DVC trusts whatever is read-only."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from configs.errors import CoevoError

REMEDY = "bring it back from a copy of the cache, or go on from another revision with `coevo rollback`"


def check_objects(cache: Path, content: str) -> None:
    """Read all of an artifact in the cache.

    Args:
        cache: of the workspace.
        content: hash of the artifact, that of a directory ends with ``.dir``.

    Raises:
        CoevoError: an object is missing or damaged; names its file.
    """
    from dvc_data.hashfile.hash import file_md5

    for name in _objects(cache, content):
        path = _path(cache, name)
        if not path.is_file():
            raise CoevoError(f"{path} is missing: {REMEDY}")
        if file_md5(str(path), _disk()) != name.removesuffix(".dir"):
            raise CoevoError(f"{path} is damaged: {REMEDY}")


def place(cache: Path, content: str, into: Path) -> None:
    """Link an artifact to ``into``, or copy it where that cannot be; the cache is only read.

    Raises:
        OSError: it is not in the cache, or there is no room.
    """
    if content.endswith(".dir"):
        into.mkdir()
    for name, parts in _files(cache, content):
        target = into.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(_path(cache, name))
        except OSError:
            shutil.copy(_path(cache, name), target)


def content_of(path: Path, cache: Path) -> str | None:
    """Content hash of an artifact in a work tree, read anew; None where it is not there."""
    from dvc_data.hashfile.build import build
    from dvc_data.hashfile.db.local import LocalHashFileDB

    if not path.exists():
        return None
    objects = LocalHashFileDB(_disk(), str(cache / "files" / "md5"))
    _, _, found = build(objects, str(path), _disk(), "md5", dry_run=True)
    return str(found.hash_info.value)


def _objects(cache: Path, content: str) -> Iterator[str]:
    """The listing comes first, so that it is checked before it is read."""
    yield content
    if content.endswith(".dir"):
        yield from sorted({name for name, _ in _files(cache, content)})


def _files(cache: Path, content: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The object of every file, and where it belongs in the artifact; no parts where the artifact is a file."""
    from dvc_data.hashfile import load
    from dvc_data.hashfile.db.local import LocalHashFileDB
    from dvc_data.hashfile.hash_info import HashInfo

    if not content.endswith(".dir"):
        yield content, ()
        return
    objects = LocalHashFileDB(_disk(), str(cache / "files" / "md5"))
    for parts, _, info in load(objects, HashInfo("md5", content)):
        yield info.value, parts


def _path(cache: Path, name: str) -> Path:
    return cache / "files" / "md5" / name[:2] / name[2:]


def _disk() -> object:
    from dvc_objects.fs import LocalFileSystem

    return LocalFileSystem()
