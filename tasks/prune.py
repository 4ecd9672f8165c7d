"""Pruning the workspace's own Prefect server: it keeps the latest task runs, so that its database stays small.

Prefect deletes whole flow runs that are old, and its API one task run a request, which on a busy server takes longer
than the iteration that made them. One statement does it in milliseconds; the server cascades and indexes the rows.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from configs.errors import CoevoError

VARIABLE = "COEVO_PREFECT_TASK_RUNS"
KEEP = 1000
"""Task runs that stay, of all runs of a workspace together: some 90 revisions of the default recipe, in 5 MB."""
AT_ONCE = 500
"""Most task runs that are deleted with a revision."""
PATIENCE = 5.0
"""Seconds to wait for the server, which writes to its database as well."""
OLD = f"""
DELETE FROM task_run WHERE id IN (
    SELECT id FROM task_run WHERE state_type IN ('COMPLETED', 'FAILED', 'CANCELLED', 'CRASHED')
    ORDER BY end_time DESC LIMIT {AT_ONCE} OFFSET ?
)
"""


def pruner(root: Path) -> Callable[[], None] | None:
    """A function that prunes a workspace's server; None where nothing is deleted.

    That is so where the server is not the workspace's own, or ``COEVO_PREFECT_TASK_RUNS`` is 0.

    Raises:
        CoevoError: ``COEVO_PREFECT_TASK_RUNS`` is not a number.
    """
    written = os.environ.get(VARIABLE, str(KEEP))
    if not written.isdecimal():
        raise CoevoError(f"{VARIABLE}={written!r}: set the number of task runs that Prefect keeps, 0 for all")
    home = root.resolve() / "prefect"
    own = os.environ.get("PREFECT_HOME") == str(home)
    return partial(prune, home / "prefect.db", int(written)) if own and int(written) else None


def prune(database: Path, keep: int) -> None:
    """Delete the oldest task runs that have ended, of whatever run, with their states; the latest ``keep`` stay.

    Raises:
        sqlite3.Error: the database is busy for long, or is another than this one expects.
    """
    address = f"{database.as_uri()}?mode=rw"
    with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE)) as opened, opened:
        opened.execute("PRAGMA foreign_keys = ON")
        opened.execute(OLD, (keep,))
