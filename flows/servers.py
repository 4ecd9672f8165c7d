"""The servers of a workspace: Prefect's for its runs, MLflow's for its pages.

One that is named by ``PREFECT_API_URL`` or ``MLFLOW_TRACKING_URI`` is used and left alone; otherwise one is started
and shared by whoever works in the workspace. ``flows.daemon.down`` stops what was started.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty

from filelock import FileLock

from flows.daemon import ensure
from flows.secret import VARIABLE, health_of, home, secret_of
from flows.server import ServerError
from lineage.files import make_private
from tasks import telemetry
from tasks.tracking.store import make_database, tracking_store

CLIENT = {
    "PREFECT_CLIENT_MAX_RETRIES": "4",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
}
"""Settings of Prefect's client: quiet, and half a minute rather than many until it gives up a server that has gone. A
stage's state says that it has ended, and a line of log besides takes a quarter of what a task does."""

SERVER = {
    "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": "http://127.0.0.1:{port}",
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "15",
    "PREFECT_SERVER_UI_API_URL": "http://127.0.0.1:{port}/api",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",
}
"""Settings of the server: which schedules have a night under way must outlive it, else one would have it for ever; each
state of a task is an event, too, and events, which take four times the room of what they are about, are passed on to
automations and open pages but not kept; nights are planned every 15 s instead of 60, since what plans those of a new
schedule at once overlooks it on a busy machine (it looks for what has changed in the last 6 s, and comes every 5 s if
it can); its pages have to be told the port, else they ask 4200; and of its two kinds of pages the second asks
amplitude.com, whatever is switched off."""


PAGES = {
    "MLFLOW_SERVER_ALLOWED_HOSTS": "127.0.0.1:{port},localhost:{port}",
    "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS": "http://127.0.0.1:{port}",
    "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE": "false",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}
"""Settings of MLflow's server: its own check of Host and Origin, however the user's servers are set; and no jobs, else
eight more processes, a gigabyte together."""


def ensure_prefect(workspace: Path) -> str:
    """API URL of the Prefect server, which is started where none is named or alive.

    Raises:
        ServerError: it did not start.
    """
    named = os.environ.get("PREFECT_API_URL")
    if named:
        return named
    secret = secret_of(workspace)
    settings = {**SERVER, "PREFECT_HOME": str(home(workspace)), "PREFECT_SERVER_API_AUTH_STRING": secret}
    # One without this secret, as earlier versions of coevo started, has another path of health and is replaced.
    return ensure(workspace, "prefect", ["flows.prefect_server"], health_of(secret), settings).url + "/api"


def ensure_mlflow_ui(workspace: Path) -> str:
    """URL of MLflow's pages, whose server is started where none is named or alive.

    Raises:
        ServerError: it did not start.
    """
    store = tracking_store(workspace)
    if store.artifacts is None:
        return store.uri
    make_private(workspace)
    command = ["mlflow", "server", "--backend-store-uri", store.uri, "--default-artifact-root", str(store.artifacts)]
    command += ["--workers", "1", "--host", "127.0.0.1", "--port"]
    with FileLock(store.lock):
        make_database(store)
        return ensure(workspace, "mlflow", command, "/health", PAGES).url


def use_prefect(workspace: Path) -> str:
    """Make this process and its children clients of ``ensure_prefect``; call it before Prefect is imported.

    The server shows flows, tasks and their states; on the console belongs the one line that the command prints.

    Raises:
        ServerError: the server did not start.
    """
    telemetry.switch_off()
    os.environ |= CLIENT
    if not os.environ.get("PREFECT_API_URL"):
        url = ensure_prefect(workspace)
        os.environ |= {"PREFECT_API_URL": url, "PREFECT_HOME": str(home(workspace)), VARIABLE: secret_of(workspace)}
    return os.environ["PREFECT_API_URL"]


@contextmanager
def prefect_in_use(then: str = "what was done is safe, repeat the command") -> Iterator[None]:
    """Call Prefect within: what its client raises once the server has gone, or cannot go on, becomes one line.

    Args:
        then: what that line says to do.

    Raises:
        ServerError: the server does not answer any more, or with errors only.
    """
    from httpx import HTTPStatusError, TransportError

    try:
        yield
    except TransportError as error:
        drop_events()
        raise gone(then) from error
    except HTTPStatusError as error:
        raise _refused(error.response.status_code, then) from error


def going_on(run: str) -> str:
    """What to do where a run has stopped."""
    return f"what is committed is safe, continue with `coevo resume {run}`"


def gone(then: str) -> ServerError:
    """The error of a run whose server is dead.

    Args:
        then: what to do, at the end of its line.
    """
    return ServerError(f"the Prefect server at {os.environ['PREFECT_API_URL']} has gone: {then}")


def drop_events() -> None:
    """Leave the events that wait for a server that has gone: each is tried for nine seconds before the process may end.

    Prefect has no call for it, hence the private names.
    """
    from prefect.events.worker import EventsWorker

    for service in list(EventsWorker._instances.values()):  # type: ignore[misc]
        with suppress(Empty):
            while True:
                service._queue.get_nowait()
                service._queue.task_done()


def _refused(status: int, then: str) -> ServerError:
    url = os.environ["PREFECT_API_URL"]
    if status in (401, 403):
        return ServerError(
            f"the Prefect server at {url} refuses us ({status}): set {VARIABLE} to what it asks for; {then}"
        )
    return ServerError(
        f"the Prefect server at {url} answers {status}: see its log, and whether its disk has room; {then}"
    )
