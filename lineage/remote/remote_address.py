"""Remotes by the address that the user gave."""

import json
from contextlib import suppress
from pathlib import Path

from coevo.lineage.remote.local_remote import LocalStore
from coevo.lineage.remote.remote_store import Overtaken, Store
from coevo.lineage.remote.s3 import S3Store
from coevo.lineage.remote.store_faults import one_line
from coevo.lineage.workspace import NAME
from coevo.utilities.errors import CoevoError

MARKER = "coevo.json"
FORMAT = 1


def to_push(text: str) -> Store:
    """Open a remote for a push; create it in an empty place.

    Raises:
        CoevoError: it cannot be reached or written to, or the place has other files.
    """
    store = _store(text)
    with one_line(store):
        store.prepare()
        if not store.names():
            # Two first pushes may create the same remote.
            with suppress(Overtaken):
                store.write(json.dumps({"format": FORMAT}).encode() + b"\n", None, MARKER)
        return _checked(store)


def to_pull(text: str) -> Store:
    """Open an existing remote for a pull.

    Raises:
        CoevoError: it cannot be reached, or is not a remote.
    """
    store = _store(text)
    with one_line(store):
        return _checked(store)


def runs_at(store: Store) -> list[str]:
    """Names of the runs at a remote."""
    with one_line(store):
        return [name for name in store.names("runs") if NAME.fullmatch(name) and store.names("runs", name)]


def _store(text: str) -> Store:
    if text.startswith("s3://"):
        if not text.removeprefix("s3://").strip("/"):
            raise CoevoError(f"remote {text}: it names no bucket: write s3://BUCKET/PREFIX")
        return S3Store(text)
    if "://" in text:
        raise CoevoError(f"remote {text}: unknown kind: name a local path, or s3://BUCKET/PREFIX")
    return LocalStore(Path(text).expanduser())


def _checked(store: Store) -> Store:
    held = store.read(MARKER)
    if held is None:
        what = "holds other files" if store.names() else "is empty"
        raise CoevoError(f"remote {store.label}: not a remote, it {what}: name one that was pushed to, or a new one")
    try:
        version = json.loads(held.content)["format"]
    except (ValueError, TypeError, KeyError):
        raise CoevoError(f"remote {store.label}: {MARKER} is damaged: write {{'format': {FORMAT}}} there") from None
    if version != FORMAT:
        raise CoevoError(f"remote {store.label}: its format is {version}, not {FORMAT}: use the coevo that wrote it")
    return store
