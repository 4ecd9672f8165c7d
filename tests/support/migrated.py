"""New databases of MLflow and Prefect are copies of the first one of the session of tests.

A new database takes seconds of migrations, and a session of tests makes dozens. The first ones are made by the
packages, as a user's are.
"""

import functools
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from coevo.flows.servers import server_secret, servers
from coevo.tasks.publish.mlflow import tracking_store

VARIABLE = "COEVO_TEST_DATABASES"
"""Folder of the first databases, for all processes of the session."""


def copy_databases():
    """From now on, copy databases in this process and in its children; return the folder, for the first process."""
    folder = None
    if VARIABLE not in os.environ:
        folder = TemporaryDirectory(prefix="databases-")
        os.environ[VARIABLE] = folder.name
    servers.make_database = tracking_store.make_database = _of_mlflow(tracking_store.make_database)
    servers.ensure_prefect = _of_prefect(servers.ensure_prefect)
    return folder


def _of_mlflow(make):
    @functools.wraps(make)
    def make_database(wanted):
        path, first = tracking_store.database_of(wanted), _first("mlflow.db")
        new = path is not None and path.parent.is_dir() and not path.exists()
        if new and first.exists():
            _copy(first, path)
        make(wanted)
        if new and not first.exists():
            _keep(path, first)

    return make_database


def _of_prefect(ensure):
    @functools.wraps(ensure)
    def ensure_prefect(workspace):
        path, first = server_secret.home(workspace) / "prefect.db", _first("prefect.db")
        elsewhere = ("PREFECT_API_URL", "PREFECT_API_DATABASE_CONNECTION_URL")
        new = not any(map(os.environ.get, elsewhere)) and not path.exists()
        if new and first.exists():
            server_secret.secret_of(workspace)  # makes the folder
            _copy(first, path)
        url = ensure(workspace)
        if new and not first.exists():
            _keep(path, first)
        return url

    return ensure_prefect


def _first(name):
    return Path(os.environ[VARIABLE], name)


def _copy(first, path):
    part = path.with_name(f"{path.name}.{os.getpid()}")
    shutil.copyfile(first, part)
    part.replace(path)


def _keep(path, first):
    part = first.with_name(f"{first.name}.{os.getpid()}")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
    part.replace(first)
