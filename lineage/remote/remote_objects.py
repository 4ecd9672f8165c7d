"""Content-addressed objects, from a workspace to a remote and back.

They are verified by content before they are sent and, since a remote may be damaged, again after they were fetched.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fsspec.callbacks import Callback

from coevo.lineage.atomic_files import check_regular
from coevo.lineage.objects.cache import LISTING, Cache
from coevo.lineage.objects.content import LIMIT, check, md5, read_list
from coevo.lineage.remote.local_remote import LocalStore, careful_disk
from coevo.lineage.remote.remote_store import Store, one_line
from coevo.utilities.errors import CoevoError

FILES = 500_000
"""Maximum number of files in all lists of a run together."""
BATCH = 32
"""Number of files between two checks for failures, so that a dead server is noticed soon."""
OBJECTS = ("cache", "files", "md5")
HashedPath = tuple[str, Path]
"""Content hash, and a file that has this content or will have it."""
Copy = Callable[[Sequence[HashedPath], list[BaseException]], Any]


class Meter(Protocol):
    """Receiver of progress; calls may come from several threads."""

    def begin(self, doing: str, files: int) -> None:
        """Announce the number of files that follow."""
        ...

    def advance(self, files: int, size: int) -> None:
        """Report files finished and bytes moved since the last call."""
        ...


class QuietMeter:
    """Meter without output."""

    def begin(self, doing: str, files: int) -> None:
        """Announce the number of files that follow."""

    def advance(self, files: int, size: int) -> None:
        """Report finished files."""


@dataclass(frozen=True)
class Moved:
    """Size of a transfer; files that existed already do not count.

    Attributes:
        files: number of files.
        size: their bytes.
    """

    files: int = 0
    size: int = 0

    def __add__(self, other: "Moved") -> "Moved":
        return Moved(self.files + other.files, self.size + other.size)


class Objects:
    """Objects of a remote and of a workspace's cache."""

    def __init__(self, store: Store, cache: Path, meter: Meter) -> None:
        from dvc_data.hashfile.db import get_odb

        self._store = store
        self._meter = meter
        self._cache = Cache(cache)
        self._disk = careful_disk()
        self._here = get_odb(self._disk, str(cache / "files" / "md5"), hash_name="md5")
        with one_line(store):
            self._there = get_odb(store.fs, store.fs.join(store.root, *OBJECTS), hash_name="md5")

    @property
    def label(self) -> str:
        """Name of the remote in messages."""
        return self._store.label

    def path(self, oid: str) -> Path:
        """Path of an object in the cache, existing or not."""
        return self._cache.path(oid)

    def send(self, sources: Mapping[str, Path]) -> Moved:
        """Send files to the remote unless it has them: {content hash: file}.

        Raises:
            CoevoError: a file is missing or does not match its hash, or the remote refuses it.
        """
        with one_line(self._store):
            lacking = set(sources) - self._sent(set(sources))
        return self._move("sending", [(oid, sources[oid]) for oid in sorted(lacking)], self._send)

    def _sent(self, oids: set[str]) -> set[str]:
        """Objects that the remote has; in a directory, DVC takes every name for one."""
        if isinstance(self._store, LocalStore):
            for path in map(Path, map(self._there.oid_to_path, sorted(oids))):
                with suppress(FileNotFoundError):
                    check_regular(path)
        return set(self._there.oids_exist(oids))

    def fetch(self, oids: Iterable[str]) -> Moved:
        """Fetch objects into the cache unless it has them.

        Raises:
            CoevoError: the remote has lost one, or has other content in its place.
        """
        wanted = set(oids)
        lacking = wanted - set(self._here.oids_exist(wanted))
        return self._move("fetching", [(oid, self.path(oid)) for oid in sorted(lacking)], self._fetch)

    def fetch_lists(self, oids: Iterable[str], scratch: Path) -> tuple[Moved, dict[str, dict[str, str]]]:
        """Fetch lists of files into the cache unless it has them; each is checked before it gets there.

        Returns:
            the moved files, and the files of each list: {content hash: {relative path: content hash}}.

        Raises:
            CoevoError: as ``fetch``, or a list names something that cannot be a file below its directory.
        """
        wanted, folder = set(oids), scratch / "lists"
        self.check_sizes(wanted, LIMIT)
        folder.mkdir()
        lacking = {folder / oid: oid for oid in sorted(wanted - set(self._here.oids_exist(wanted)))}
        moved = self.fetch_files(lacking)
        cached = {oid: self.path(oid) for oid in wanted.difference(lacking.values())}
        try:
            found = _read_lists({oid: path for path, oid in lacking.items()} | cached)
        except CoevoError as error:
            raise CoevoError(f"remote {self.label}: {error}") from error
        for path, oid in lacking.items():
            self._cache.adopt(path, oid)
        return moved, found

    def check_sizes(self, oids: Iterable[str], most: int) -> None:
        """Check objects in a directory before they are copied: a sparse file has any size and takes no room there.

        Raises:
            CoevoError: one is not a regular file, or has more than ``most`` bytes.
        """
        if not isinstance(self._store, LocalStore):
            return
        for path in map(Path, map(self._there.oid_to_path, sorted(oids))):
            with suppress(FileNotFoundError):
                check_regular(path)
                if (size := path.lstat().st_size) > most:
                    raise CoevoError(
                        f"remote {self._store.label}: object {path} has {size} bytes, where {most} are possible: "
                        "remove it there, and push again from a machine that has the run"
                    )

    def fetch_files(self, files: Mapping[Path, str]) -> Moved:
        """Fetch objects to files outside the cache, {file: content hash}; raises as ``fetch`` does."""
        return self._move("fetching", [(oid, path) for path, oid in files.items()], self._fetch_files)

    def _move(self, doing: str, pairs: Sequence[HashedPath], copy: Copy) -> Moved:
        self._meter.begin(doing, len(pairs))
        moved = Moved()
        for start in range(0, len(pairs), BATCH):
            batch, failed = pairs[start : start + BATCH], list[BaseException]()
            with one_line(self._store):
                copy(batch, failed)
                for error in failed:
                    raise error
            self._meter.advance(len(batch), 0)
            moved += Moved(len(batch), sum(path.stat().st_size for _, path in batch))
        return moved

    def _send(self, batch: Sequence[HashedPath], failed: list[BaseException]) -> None:
        for oid, path in batch:
            check(path, oid)
        self._there.add(
            [str(path) for _, path in batch],
            self._disk,
            [oid for oid, _ in batch],
            check_exists=False,
            callback=_Bytes(self._meter),
            on_error=lambda _, error: failed.append(error),
        )

    def _fetch(self, batch: Sequence[HashedPath], failed: list[BaseException]) -> None:
        self._here.add(
            [self._there.oid_to_path(oid) for oid, _ in batch],
            self._store.fs,
            [oid for oid, _ in batch],
            check_exists=False,
            verify=True,
            callback=_Bytes(self._meter),
            on_error=lambda _, error: failed.append(error),
        )
        # DVC has removed files that do not match their names.
        self._judge(batch, failed, lambda _, path: path.is_file())

    def _fetch_files(self, batch: Sequence[HashedPath], failed: list[BaseException]) -> None:
        from dvc_objects.fs.generic import transfer

        transfer(
            self._store.fs,
            [self._there.oid_to_path(oid) for oid, _ in batch],
            self._disk,
            [str(path) for _, path in batch],
            callback=_Bytes(self._meter),
            on_error=lambda _from, _to, error: failed.append(error),
        )
        self._judge(batch, failed, lambda oid, path: path.is_file() and md5(path) == oid.removesuffix(LISTING))

    def _judge(
        self, batch: Sequence[HashedPath], failed: list[BaseException], good: Callable[[str, Path], bool]
    ) -> None:
        """Distinguish objects that the remote has lost or damaged from a remote that does not answer."""
        if all(isinstance(error, FileNotFoundError) for error in failed):
            for oid, path in batch:
                if not good(oid, path):
                    raise CoevoError(
                        f"remote {self._store.label}: object {self._there.oid_to_path(oid)} is missing or does not "
                        "match its name: remove it there, and push again from a machine that has the run"
                    )


class _Bytes(Callback):  # type: ignore[misc]
    """Progress callback that passes on the bytes of every file."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def branched(self, path_1: str, path_2: str, **_: Any) -> Callback:
        return _File(self._meter)


class _File(Callback):  # type: ignore[misc]
    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def relative_update(self, inc: int = 1) -> None:
        self._meter.advance(0, inc)


def _read_lists(paths: Mapping[str, Path]) -> dict[str, dict[str, str]]:
    """Lists of files by content hash.

    Raises:
        CoevoError: one is malformed, or together they name more files than a run has.
    """
    found: dict[str, dict[str, str]] = {}
    total = 0
    for oid, path in paths.items():
        found[oid] = dict(read_list(path))
        total += len(found[oid])
        if total > FILES:
            raise CoevoError(f"its lists name more than {FILES} files: do not use this remote")
    return found
