"""The files of banks at a remote, fetched one by one where a repair asks for them.

Nothing of what the remote says is believed: names are those that are asked for here, a file has the content hash of
the remote's list, and whether it is right is for the caller to find out before it is placed.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from configs.errors import CoevoError
from lineage.content import read_list
from lineage.remote.objects import Objects
from lineage.remote.push import remote_bundle
from lineage.remote.store import Store
from lineage.repository import own_files
from lineage.workspace import Workspace

OID = re.compile(r"[0-9a-f]{32}")


class RemoteBanks:
    """Banks of the runs at a remote."""

    def __init__(self, store: Store, place: Workspace) -> None:
        self._scratch = TemporaryDirectory(prefix="coevo-")
        self._store = store
        self._place = place
        self._objects = Objects(store, place.cache, _Quiet())
        self._banks: dict[str, RemoteBank] = {}

    def of(self, run: str) -> "RemoteBank":
        """The bank of a run, which has no file where the remote does not have the run."""
        if run not in self._banks:
            scratch = Path(self._scratch.name) / run
            own = own_files(self._place.run(run).lineage, self._place.cache)
            _, theirs = remote_bundle(self._store, run, scratch, own)
            self._banks[run] = RemoteBank(self._objects, scratch, theirs.record().bank if theirs else None)
        return self._banks[run]


class RemoteBank:
    """The bank of one run there."""

    def __init__(self, objects: Objects, scratch: Path, listing: str | None) -> None:
        """Args:
        objects: of the remote.
        scratch: where files are fetched to.
        listing: content hash of the list of its files, None for a bank without any.

        Raises:
            CoevoError: the list is not there, or is none.
        """
        self._objects = objects
        self._scratch = scratch
        self._files: Mapping[str, str] = {}
        if listing is not None:
            if not OID.fullmatch(listing.removesuffix(".dir")):
                raise CoevoError(f"the remote's record names {listing!r}, no content hash: do not use this remote")
            objects.fetch([listing])
            self._files = read_list(objects.path(listing))

    def file(self, table: str, name: str) -> Path | None:
        """A copy of one of its files; None where it has none of this name.

        Raises:
            CoevoError: the remote fails, or has something else in its place.
        """
        content = self._files.get(f"{table}.lance/{name}")
        if not isinstance(content, str) or not OID.fullmatch(content):
            return None
        copy = self._scratch / content
        if not copy.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            self._objects.fetch_files({copy: content})
        return copy


class _Quiet:
    """A meter that says nothing."""

    def begin(self, doing: str, files: int) -> None:
        """So many files follow."""

    def advance(self, files: int, size: int) -> None:
        """So many files are done."""
