"""Atomic writes of small files: whenever the process dies, a file is either the old or the new one."""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from errno import ENOTDIR
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import IO

from coevo.utilities.errors import CoevoError

LINKS, LOCKS, RECORD_LOCKS = "hard links", "file locks (flock)", "record locks (fcntl)"
MODES, RENAMES, SYNC = "file modes (chmod)", "renames over a file", "fsync"
"""Functions of a file system that runs need."""
OF_BANKS = (LINKS, LOCKS, RECORD_LOCKS)
"""Functions that a bank alone needs."""
NEEDED = (*OF_BANKS, MODES, SYNC, RENAMES)


def write_atomically(path: Path, text: str, private: bool = False) -> None:
    """Replace a UTF-8 file by temporary file, fsync and rename; a failure leaves nothing behind.

    Args:
        path: of the file.
        text: its content.
        private: True if other users can never read it (mode 600). Its temporary file is a new one each time, so that
            several processes may write it.
    """
    fresh = path.with_name(f".{path.name}.{token_hex(8)}.new" if private else f".{path.name}.new")
    with ExitStack() as left:
        with _created(fresh) if private else fresh.open("w", encoding="utf-8", newline="\n") as file:
            left.callback(fresh.unlink, missing_ok=True)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)


def _created(path: Path) -> IO[str]:
    """Create a file that only its owner can read, from its first byte on."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return os.fdopen(handle, "w", encoding="utf-8", newline="\n")


def open_regular(path: Path) -> IO[bytes]:
    """Open a file of a directory that others write to; opening and reading never block, and links are not followed.

    Raises:
        CoevoError: as ``check_regular``.
        OSError: it does not exist, or may not be read.
    """
    check_regular(path)  # a device may act when it is opened
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise _irregular(path) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):  # it was replaced meanwhile
        os.close(handle)
        raise _irregular(path)
    return os.fdopen(handle, "rb")


def check_regular(path: Path) -> None:
    """Check what a path names, without opening it.

    Raises:
        CoevoError: it is a link, a pipe, a socket, a device or a directory.
        OSError: it does not exist, or may not be looked up.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise _irregular(path)


def _irregular(path: Path) -> CoevoError:
    return CoevoError(f"{path} is not a regular file: remove it there, and push again from a machine that has the run")


def check_file_system(directory: Path) -> None:
    """Check that the file system of a workspace can do what runs need.

    Raises:
        CoevoError: it cannot; names the remedy.
    """
    try:
        missing = lacking(directory)
    except OSError as error:  # of the directory, not of the file that was tried
        raise OSError(error.errno, error.strerror, str(directory)) from error
    if missing is not None:
        raise CoevoError(f"{directory}: its file system has no {missing}, which runs need: {another(missing)}")


def another(missing: str) -> str:
    """Remedy for a file system that lacks something."""
    locks = missing in (LOCKS, RECORD_LOCKS)
    mount = "mount it with them (`-o flock`, or with a lock service), or " if locks else ""
    return f"{mount}name a directory on another one (ext4, XFS, APFS) with --workspace"


def lacking(directory: Path, needed: Collection[str] = NEEDED) -> str | None:
    """Name the first of these functions that a directory's file system lacks, or None.

    Lance commits a version of a table by a hard link, processes keep each other from a run by ``flock``, and SQLite
    from its databases by ``fcntl``. Other users may not read secrets, stored objects are read-only, and small files
    are replaced whole.

    Raises:
        OSError: the directory cannot be written to.
    """
    with TemporaryDirectory(prefix=".probe-", dir=directory) as scratch:
        probe = Path(scratch, "file")
        with probe.open("wb") as file:
            for missing, works in (
                (LINKS, lambda: os.link(probe, probe.with_name("link"))),
                (LOCKS, lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)),
                (RECORD_LOCKS, lambda: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)),
                (MODES, lambda: _make_private_file(probe)),
                (SYNC, lambda: os.fsync(file.fileno())),
                (RENAMES, lambda: _replace(probe)),
            ):
                try:
                    if missing in needed:
                        works()
                except OSError as error:
                    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                        raise
                    return missing
    return None


def locked_alone(file: IO[bytes] | int, path: Path) -> bool:
    """Lock an open file or directory ``path`` against others without waiting; False if another process holds it.

    Raises:
        CoevoError: its file system has no locks.
    """
    try:
        with needing_locks():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        raise CoevoError(f"{path}: its file system has no {LOCKS}: name a place on another one") from None
    return True


@contextmanager
def needing_locks() -> Iterator[None]:
    """Let the error of a file system without locks say so: some answer as if a program's call was wrong."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from error


def _make_private_file(path: Path) -> None:
    path.chmod(0o600)
    if path.stat().st_mode & 0o077:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))


def _replace(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.touch()
    fresh.replace(path)


def remove(path: Path, root: Path) -> None:
    """Remove a file or a directory below ``root`` if it exists; of a link, only the link.

    Raises:
        CoevoError: the path leads out of ``root``, by a name or by a link on the way; nothing was removed.
    """
    if path.name == ".." or not (path.parent.resolve() / path.name).is_relative_to(root.resolve()) or path == root:
        raise CoevoError(f"{path} is outside of {root}: it was not removed; do not trust the file that names it")
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def make_private(directory: Path) -> None:
    """Create a directory that only its owner can access; an existing one keeps its mode.

    Raises:
        OSError: it cannot be created, or something else has its name.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        if not directory.is_dir():
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(directory)) from None


def content_hash(directory: Path) -> str:
    """SHA-256 (hex) over path and content of every file of a directory."""
    total = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{content} {path.relative_to(directory).as_posix()}\n".encode())
    return total.hexdigest()


def hash_beside(directory: Path) -> Path:
    """File with the hash of a directory's content at its creation."""
    return directory.with_suffix(".sha256")


def as_made(directory: Path) -> bool:
    """True if a directory still has the content that the hash file next to it names."""
    noted = hash_beside(directory)
    return noted.is_file() and noted.read_text(encoding="utf-8", errors="replace").strip() == content_hash(directory)
