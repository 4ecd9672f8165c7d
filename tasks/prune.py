"""Pruning the workspace's own Prefect server: it keeps the latest task runs, so that its database stays small."""

import os
from contextlib import suppress
from pathlib import Path

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterState, TaskRunFilterStateType
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import TaskRunSort
from prefect.exceptions import ObjectNotFound

from configs.errors import CoevoError

VARIABLE = "COEVO_PREFECT_TASK_RUNS"
KEEP = 1000
"""Task runs that stay, of all runs of a workspace together: some 90 revisions of the default recipe, in 5 MB."""
AT_ONCE = 200
"""Most task runs that are deleted with a revision."""
ENDED = (StateType.COMPLETED, StateType.FAILED, StateType.CANCELLED, StateType.CRASHED)


def kept_task_runs(root: Path) -> int | None:
    """Number of task runs that stay; None where nothing is deleted: the server is not the workspace's, or 0 is set.

    Args:
        root: directory of the workspace.

    Raises:
        CoevoError: ``COEVO_PREFECT_TASK_RUNS`` is not a number.
    """
    written = os.environ.get(VARIABLE, str(KEEP))
    if not written.isdecimal():
        raise CoevoError(f"{VARIABLE}={written!r}: set the number of task runs that Prefect keeps, 0 for all")
    own = os.environ.get("PREFECT_HOME") == str(root.resolve() / "prefect")
    return int(written) or None if own else None


def prune(client: SyncPrefectClient, keep: int) -> None:
    """Delete the oldest task runs that have ended, of whatever run, until ``keep`` of them are left."""
    ended = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=list(ENDED))))
    newest_first = TaskRunSort.END_TIME_DESC
    for old in client.read_task_runs(task_run_filter=ended, sort=newest_first, limit=AT_ONCE, offset=keep):
        with suppress(ObjectNotFound):  # another run of the workspace has deleted it
            client.delete_task_run(old.id)
