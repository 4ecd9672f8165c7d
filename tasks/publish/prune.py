"""Pruning of the workspace's own Prefect server: only the latest task runs are kept, so that its database stays small.

Prefect can delete only whole old flow runs, and its API one task run per request, which takes longer on a busy server
than the iteration that made them. One SQL statement takes milliseconds; the server cascades and indexes the rows.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from coevo.utilities.errors import CoevoError

VARIABLE = "COEVO_PREFECT_TASK_RUNS"
KEEP = 1000
"""Task runs to keep, of all runs of a workspace: some 90 revisions of the default recipe, in 5 MB."""
AT_ONCE = 500
"""Most task runs deleted per revision."""
PATIENCE = 5.0
"""Timeout in seconds, since the server also writes to its database."""
OLD = f"""
DELETE FROM task_run WHERE id IN (
    SELECT id FROM task_run WHERE state_type IN ('COMPLETED', 'FAILED', 'CANCELLED', 'CRASHED')
    ORDER BY end_time DESC LIMIT {AT_ONCE} OFFSET ?
)
"""


def pruner(root: Path) -> Callable[[], None] | None:
    """Function that prunes a workspace's server; None if nothing is to be deleted.

    This is the case if the server is not the workspace's own, or ``COEVO_PREFECT_TASK_RUNS`` is 0.

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
    """Delete the oldest finished task runs of all runs, with their states; the latest ``keep`` stay.

    Raises:
        sqlite3.Error: the database is busy for too long, or has an unexpected schema.
    """
    address = f"{database.as_uri()}?mode=rw"
    with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE)) as opened, opened:
        opened.execute("PRAGMA foreign_keys = ON")
        opened.execute(OLD, (keep,))
