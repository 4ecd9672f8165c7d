"""MLflow's database names artifacts by absolute paths: in a workspace that was moved or copied they are put right.

Otherwise what is published there would be written to where the workspace was, or into the one that was copied.
"""

import sqlite3
from pathlib import Path
from urllib.parse import unquote, urlsplit

FOLDER = "mlartifacts"
"""Where a workspace keeps the artifacts of its experiments, one folder for each."""
PLACES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
    ("trace_tags", "value"),
)
"""Where MLflow keeps the URI of a folder of an experiment, or of something in it."""


def bring_along(database: sqlite3.Connection, artifacts: str) -> None:
    """Name the folders of experiments where they are now, within a transaction of the caller.

    Args:
        database: MLflow's, of a workspace of its own.
        artifacts: URI of the workspace's folder of artifacts.
    """
    known = f"SELECT artifact_location FROM experiments WHERE artifact_location LIKE 'file://%/{FOLDER}/%'"
    for (before,) in database.execute(known).fetchall():
        root, _, name = before.rpartition("/")
        after = f"{artifacts}/{name}"
        if root.endswith(f"/{FOLDER}") and root != artifacts and _has_moved(before, after):
            _rename(database, before, after)


def _has_moved(before: str, after: str) -> bool:
    """Not so where another workspace publishes to this database: its artifacts are there, and not here."""
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
