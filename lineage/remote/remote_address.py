"""Remotes by the address that the user gave."""

import json
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from coevo.configs.proxies import reach
from coevo.lineage.names import RUN
from coevo.lineage.remote.local_remote import LocalStore
from coevo.lineage.remote.remote_store import LIMIT, Overtaken, SmallFile, Store, one_line
from coevo.utilities.errors import CoevoError

MARKER = "coevo.json"
FORMAT = 1
TIMEOUTS = {"connect_timeout": 10, "read_timeout": 60}
"""Time limits of a connection, in seconds."""
CONFLICTS = ("PreconditionFailed", "ConditionalRequestConflict")


class S3Store:
    """Objects under a prefix of an existing bucket."""

    def __init__(self, address: str) -> None:
        self.label = address
        self.root = address.removeprefix("s3://").strip("/")
        self._bucket, _, self._prefix = self.root.partition("/")

    @cached_property
    def fs(self) -> Any:
        """DVC's file system; creating it reads the user's AWS settings, which may fail."""
        return _file_system()

    def prepare(self) -> None:
        """No preparation: a prefix exists with its first object."""

    def names(self, *folder: str) -> list[str]:
        """Names in a folder."""
        prefix = "".join(f"{part}/" for part in (self._prefix, *folder) if part)
        names: list[str] = []
        page: dict[str, Any] = {"NextContinuationToken": ""}
        while "NextContinuationToken" in page:
            after = page["NextContinuationToken"]
            more = {"ContinuationToken": after} if after else {}
            page = self._call("list_objects_v2", Prefix=prefix, Delimiter="/", **more)
            names += [each["Prefix"] for each in page.get("CommonPrefixes", [])]
            names += [each["Key"] for each in page.get("Contents", [])]
        return [name.removeprefix(prefix).rstrip("/") for name in names if name != prefix]

    def read(self, *path: str) -> SmallFile | None:
        """Read a small object, all of one version; None if it does not exist."""
        if path[-1] not in self.names(*path[:-1]):
            return None
        with self.fs.fs.open("/".join((self.root, *path)), "rb") as file:
            return SmallFile(file.read(LIMIT + 1), file.details["ETag"])

    def write(self, content: bytes, held: SmallFile | None, *path: str) -> SmallFile:
        """Write a small object on the condition that no other process has."""
        condition = {"IfMatch": held.stamp} if held else {"IfNoneMatch": "*"}
        key = "/".join(part for part in (self._prefix, *path) if part)
        try:
            return SmallFile(content, self._call("put_object", Key=key, Body=content, **condition)["ETag"])
        except OSError as error:
            said = getattr(error.__cause__, "response", {}).get("Error", {}).get("Code")
            if said in CONFLICTS or isinstance(error, FileExistsError):
                raise Overtaken(f"s3://{self._bucket}/{key} has changed meanwhile") from error
            raise

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.fs.fs.call_s3(method, Bucket=self._bucket, **arguments)
        return answer


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
        return [name for name in store.names("runs") if RUN.fullmatch(name) and store.names("runs", name)]


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


def _file_system() -> Any:
    try:
        from dvc_s3 import S3FileSystem
    except ImportError:
        raise CoevoError("s3:// needs the extra s3: pip install 'coevo[s3]', or name a local path") from None
    wrapped = S3FileSystem(**TIMEOUTS)
    if _reached_directly():
        wrapped.fs_args["config_kwargs"]["proxies"] = {}
    # s3fs also retries: five times five attempts would take minutes to report a dead server.
    wrapped.fs_args["config_kwargs"]["retries"] = {"total_max_attempts": 1}
    wrapped.fs.retries = 4
    return wrapped


def _reached_directly() -> bool:
    """Report whether requests go past the environment's proxies; AWS's own servers are elsewhere."""
    from botocore.configprovider import ConfiguredEndpointProvider
    from botocore.session import Session

    found = Session()
    profile, known = found.get_scoped_config(), found.full_config
    url = ConfiguredEndpointProvider(known, profile, "s3").provide() or "https://s3.amazonaws.com"
    return reach(url, "AWS_ENDPOINT_URL", by_requests=False)
