"""Where MLflow keeps things, and a client that says in one line what is wrong."""

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock

from configs.errors import CoevoError
from tasks import telemetry
from tasks.tracking.moved import FOLDER, bring_along

SQLITE = "sqlite:///"
DATABASE = "mlflow.db"
LOCKED = 2.0
"""Seconds until a database that another process has locked is given up."""


class TrackingError(CoevoError):
    """MLflow did not take what was published; what the cursor lacks can be published later."""


@dataclass(frozen=True)
class Store:
    """Where MLflow keeps things.

    Attributes:
        uri: tracking URI.
        artifacts: root URI of the artifacts of new experiments; None where the server decides.
        lock: file that is locked while a run is looked up or made: two processes that make one database fail.
    """

    uri: str
    artifacts: str | None
    lock: Path


def tracking_store(workspace: Path) -> Store:
    """What ``MLFLOW_TRACKING_URI`` names, else a database and a folder in the workspace."""
    root = workspace.resolve()
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{root / DATABASE}"
    return Store(uri, None if uri.startswith("http") else (root / FOLDER).as_uri(), root / "mlflow.lock")


def client(store: Store) -> Any:
    """MLflow's client."""
    return package().MlflowClient(tracking_uri=store.uri)


@cache
def package() -> Any:
    """MLflow: imported in the publishing thread since it takes seconds, quiet, and quick to give a server up."""
    telemetry.switch_off()
    import mlflow

    logging.getLogger("mlflow.store").setLevel(logging.CRITICAL)  # it would show a traceback of what is said in a line
    return mlflow


@contextmanager
def translated(store: Store, what: str = "does not take the run") -> Iterator[None]:
    """Whatever MLflow, its database and its transport raise, as one line."""
    from sqlalchemy.exc import DBAPIError  # as it is where MLflow makes its tables, elsewhere within MLflow's own

    try:
        yield
    except (package().MlflowException, DBAPIError, sqlite3.Error, OSError) as error:
        # Of SQLAlchemy's errors the database's own words are enough.
        said = getattr(error, "orig", getattr(error.__cause__, "orig", error))
        reason = without_login(" ".join(str(said).split()), store.uri)[:200]
        raise TrackingError(f"MLflow at {without_login(store.uri, store.uri)} {what}: {reason}") from error


def without_login(text: str, uri: str) -> str:
    """A text without the user and password of a URI: they are a secret, and it is shown and kept."""
    login = urlsplit(uri).netloc.rpartition("@")[0]
    return text.replace(f"{login}@", "") if login else text


@contextmanager
def reached(store: Store, what: str) -> Iterator[Any]:
    """MLflow's client, where it can be reached; whatever goes wrong within is one line.

    Raises:
        TrackingError: MLflow cannot be reached or refuses.
    """
    with translated(store, what):
        check_database(store)
        yield client(store)


def check_database(store: Store) -> None:
    """Whether a database in a file can be written to: MLflow itself would try for minutes, and in silence.

    A workspace's own is put right where the workspace was moved or copied.
    """
    if store.uri.startswith(SQLITE):
        with FileLock(store.lock):
            make_database(store)
            with closing(sqlite3.connect(_path(store), timeout=LOCKED)) as database:
                database.execute("BEGIN IMMEDIATE")
                if store.artifacts is not None and _path(store) == store.lock.with_name(DATABASE):
                    bring_along(database, store.artifacts)
                database.commit()


def make_database(store: Store) -> None:
    """A database in a file, where there is none yet; for the holder of the store's lock.

    It is there as a whole or not at all: MLflow makes its tables in many steps, and what is left of some of them, when
    the process is killed or the disk is full, it neither uses nor mends.
    """
    path = _path(store)
    if not store.uri.startswith(SQLITE) or (path.is_file() and path.stat().st_size):
        return
    package()
    from mlflow.store.db.utils import _safe_initialize_tables, create_sqlalchemy_engine

    for left in path.parent.glob(f"{path.name}.part*"):
        left.unlink()
    part = path.with_name(f"{path.name}.part")
    engine = create_sqlalchemy_engine(f"{SQLITE}{part}")
    try:
        _safe_initialize_tables(engine)
    finally:
        engine.dispose()
    part.replace(path)


def _path(store: Store) -> Path:
    return Path(store.uri.removeprefix(SQLITE).partition("?")[0])
