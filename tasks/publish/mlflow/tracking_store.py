"""MLflow's store and client, with errors as one line."""

import json
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from filelock import FileLock

from coevo.configs.proxies import reach
from coevo.utilities.errors import CoevoError
from coevo.utilities.extras import missing_extra

SQLITE = "sqlite:///"
DATABASE = "mlflow.db"
LOCKED = 2.0
"""Timeout for a database that another process has locked, in seconds."""
FOLDER = "mlartifacts"
"""Folder of a workspace for the artifacts of its experiments, one folder each."""
PLACES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
    ("trace_tags", "value"),
)
"""Tables and columns in which MLflow stores the URI of an experiment's folder, or of a file in it."""


class TrackingError(CoevoError):
    """MLflow refused a publication; revisions after the cursor can be published later."""


@dataclass(frozen=True)
class TrackingStore:
    """MLflow's store.

    Attributes:
        uri: tracking URI.
        artifacts: root URI of the artifacts of new experiments; None if the server decides.
        lock: file to lock while a run is looked up or created: creating one database twice at a time fails.
    """

    uri: str
    artifacts: str | None
    lock: Path


def tracking_store(workspace: Path) -> TrackingStore:
    """The store of ``MLFLOW_TRACKING_URI``, else a database and a folder in the workspace.

    Without a server, artifacts of new experiments go to ``MLFLOW_DEFAULT_ARTIFACT_ROOT``, else to the folder.

    Raises:
        CoevoError: the variable names no address, or a proxy on the way to it cannot be used.
    """
    root = workspace.resolve()
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}{root / DATABASE}"
    if uri.startswith(("http:", "https:")):
        reach(uri, "MLFLOW_TRACKING_URI", by_requests=True)
    artifacts = os.environ.get("MLFLOW_DEFAULT_ARTIFACT_ROOT", "").rstrip("/") or (root / FOLDER).as_uri()
    return TrackingStore(uri, None if uri.startswith("http") else artifacts, root / "mlflow.lock")


def _is_own_server(uri: str, root: Path) -> bool:
    """Return True if a URI is the address of the MLflow server that ``coevo ui`` started for a workspace."""
    try:
        parts, records = urlsplit(uri), json.loads((root / "servers.json").read_bytes())
        ports = [record["port"] for record in records if record["name"] == "mlflow"]
        return parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost") and parts.port in ports
    except (OSError, ValueError, TypeError, KeyError):
        return False


def client(store: TrackingStore) -> Any:
    """MLflow's client."""
    return package().MlflowClient(tracking_uri=store.uri)


@cache
def package() -> Any:
    """MLflow, imported on use since that takes seconds; quiet, and with short timeouts."""
    import mlflow

    logging.getLogger("mlflow.store").setLevel(logging.CRITICAL)  # it would log tracebacks of errors shown as one line
    return mlflow


@contextmanager
def translated(store: TrackingStore, what: str = "does not take the run") -> Iterator[None]:
    """Translate exceptions of MLflow, its database and its transport to one line."""
    from sqlalchemy.exc import SQLAlchemyError  # raised where MLflow creates its tables; elsewhere, MLflow wraps it

    try:
        yield
    # A database's driver may not be installed.
    except (package().MlflowException, SQLAlchemyError, sqlite3.Error, OSError, ImportError) as error:
        # Of SQLAlchemy's errors, the database's own message suffices.
        own = getattr(error, "orig", getattr(error.__cause__, "orig", error))
        said = missing_extra(error) or own
        reason = without_login(" ".join(str(said).split()), store.uri)[:200]
        raise TrackingError(f"MLflow at {without_login(store.uri, store.uri)} {what}: {reason}") from error


def without_login(text: str, uri: str) -> str:
    """Remove the user and password of a URI from a text that is shown and stored."""
    login = uri.partition("://")[2].partition("/")[0].rpartition("@")[0]
    return text.replace(f"{login}@", "") if login else text


@contextmanager
def reached(store: TrackingStore, what: str) -> Iterator[Any]:
    """MLflow's client, if it can be reached; errors within are one line.

    Raises:
        TrackingError: MLflow cannot be reached or refuses.
    """
    with translated(store, what):
        check_database(store)
        yield client(store)


def check_location(store: TrackingStore, uri: str, what: str) -> None:
    """Check that artifacts lie where a store may keep them, before they are read or written.

    The workspace's own database and server keep them in the workspace's folder. Another server may keep them anywhere
    but in a folder of this machine, which it does not know. No store keeps them relative to the working directory.

    Args:
        store: MLflow's store.
        uri: location that it names.
        what: artifacts, for the message.

    Raises:
        TrackingError: they do not.
    """
    scheme, root = urlsplit(uri).scheme, store.lock.with_name(FOLDER)
    if scheme not in ("", "file", "models", "runs"):
        return
    path = unquote(urlsplit(uri).path) if scheme == "file" else uri
    own = database_of(store) == store.lock.with_name(DATABASE) or _is_own_server(store.uri, store.lock.parent)
    inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    anywhere = not own and database_of(store) is not None
    if scheme in ("models", "runs") or not Path(path).is_absolute() or not (inside or anywhere):
        where = str(root) if own or anywhere else "the server's own storage, `mlflow server --artifacts-destination`"
        known = without_login(store.uri, store.uri)
        raise TrackingError(f"MLflow at {known} names {uri[:200]!a} as the place of {what}: they belong into {where}")


def check_database(store: TrackingStore) -> None:
    """Make sure that a database in a file is writable: MLflow itself would retry for minutes, silently.

    Paths in a workspace's own database are corrected if the workspace was moved or copied.
    """
    path = database_of(store)
    if path is not None:
        with FileLock(store.lock):
            make_database(store)
            with closing(sqlite3.connect(path, timeout=LOCKED)) as database:
                database.execute("BEGIN IMMEDIATE")
                if path == store.lock.with_name(DATABASE):
                    bring_along(database, path.with_name(FOLDER).as_uri())
                database.commit()


def make_database(store: TrackingStore) -> None:
    """Create a database in a file if missing; the caller holds the store's lock.

    The file appears complete or not at all: MLflow creates its tables in many steps, and can neither use nor repair
    what a kill or a full disk leaves of them.
    """
    path = database_of(store)
    if path is None or (path.is_file() and path.stat().st_size):
        return
    package()
    from mlflow.db import upgrade  # the command `mlflow db upgrade`

    for left in path.parent.glob(f"{path.name}.part*"):
        left.unlink()
    part = path.with_name(f"{path.name}.part")
    part.touch()  # MLflow would try for minutes, and in silence, to open a file that cannot be made
    upgrade.main([f"{SQLITE}{part}"], standalone_mode=False)
    if store.artifacts is not None:
        _make_default_experiment(f"{SQLITE}{part}", store.artifacts)
    part.replace(path)


def _make_default_experiment(uri: str, artifacts: str) -> None:
    """Create MLflow's experiment ``0``: its first client would keep its artifacts in the working directory."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    SqlAlchemyStore(uri, artifacts).engine.dispose()


def database_of(store: TrackingStore) -> Path | None:
    """File of the store's database, without the options of its URI; None for any other store."""
    return Path(store.uri.removeprefix(SQLITE).partition("?")[0]) if store.uri.startswith(SQLITE) else None


def bring_along(database: sqlite3.Connection, artifacts: str) -> None:
    """Correct the folders of experiments, within a transaction of the caller.

    Args:
        database: MLflow's database of one workspace.
        artifacts: URI of the workspace's folder of artifacts.
    """
    known = f"SELECT artifact_location FROM experiments WHERE artifact_location LIKE 'file://%/{FOLDER}/%'"
    for (before,) in database.execute(known).fetchall():
        root, _, name = before.rpartition("/")
        after = f"{artifacts}/{name}"
        if root.endswith(f"/{FOLDER}") and root != artifacts and _has_moved(before, after):
            _rename(database, before, after)


def _has_moved(before: str, after: str) -> bool:
    """Report whether a folder has moved; not so if another workspace that has it publishes to this database."""
    return _path(after).is_dir() or not _path(before).exists()


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def _rename(database: sqlite3.Connection, before: str, after: str) -> None:
    for table, column in PLACES:
        database.execute(
            f"UPDATE {table} SET {column} = :after || substr({column}, length(:before) + 1) "
            f"WHERE {column} = :before OR substr({column}, 1, length(:before) + 1) = :before || '/'",
            {"before": before, "after": after},
        )
