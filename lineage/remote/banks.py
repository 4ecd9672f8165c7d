"""Files of banks at a remote, fetched one by one for a repair.

The remote is not trusted: file names come from the caller, a file must have the content hash in the remote's list, and
the caller verifies it before use.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from coevo.lineage.objects.content import read_list
from coevo.lineage.remote.push import remote_bundle
from coevo.lineage.remote.remote_objects import Objects, QuietMeter
from coevo.lineage.remote.remote_store import Store
from coevo.lineage.repository import own_files
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

OID = re.compile(r"[0-9a-f]{32}")


class RemoteBanks:
    """Banks of the runs at a remote."""

    def __init__(self, store: Store, workspace: Workspace) -> None:
        self._scratch = TemporaryDirectory(prefix="coevo-")
        self._store = store
        self._workspace = workspace
        self._objects = Objects(store, workspace.cache, QuietMeter())
        self._banks: dict[str, RemoteBank] = {}

    def of(self, run: str) -> "RemoteBank":
        """Bank of a run; it has no files if the remote does not have the run."""
        if run not in self._banks:
            scratch = Path(self._scratch.name) / run
            own = own_files(self._workspace.run(run).lineage, self._workspace.cache)
            _, theirs = remote_bundle(self._store, run, scratch, own)
            self._banks[run] = RemoteBank(self._objects, scratch, theirs.record().bank if theirs else None)
        return self._banks[run]


class RemoteBank:
    """Bank of one run at the remote."""

    def __init__(self, objects: Objects, scratch: Path, listing: str | None) -> None:
        """Args:
        objects: of the remote.
        scratch: directory for fetched files.
        listing: content hash of the list of its files, None for a bank without any.

        Raises:
            CoevoError: the list does not exist, or is malformed.
        """
        self._objects = objects
        self._scratch = scratch
        self._files: Mapping[str, str] = {} if listing is None else _listed(objects, listing)

    def file(self, table: str, name: str) -> Path | None:
        """Fetch a copy of one of its files; None if it has no file of this name.

        Raises:
            CoevoError: the remote fails, or has other content in its place.
        """
        content = self._files.get(f"{table}.lance/{name}")
        if not isinstance(content, str) or not OID.fullmatch(content):
            return None
        copy = self._scratch / content
        if not copy.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            self._objects.fetch_files({copy: content})
        return copy


def _listed(objects: Objects, listing: str) -> dict[str, str]:
    """Content hash of each file in a list at the remote."""
    if not OID.fullmatch(listing.removesuffix(".dir")):
        raise CoevoError(f"the remote's record names {listing!r}, not a content hash: do not use this remote")
    objects.fetch([listing])
    return read_list(objects.path(listing))
