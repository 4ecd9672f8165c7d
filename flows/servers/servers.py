"""The servers of a workspace: Prefect for its runs, MLflow for its pages.

A server named by ``PREFECT_API_URL`` or ``MLFLOW_TRACKING_URI`` is used and never stopped; otherwise one is started
and shared by all commands of the workspace. ``coevo.flows.servers.daemon.down`` stops servers started here.
A browser gets access to their pages by a link that works once.
"""

import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty
from typing import Any

from filelock import FileLock

from coevo.configs.proxies import host_of, passes, reach_directly
from coevo.flows.servers.daemon import ensure, recorded
from coevo.flows.servers.server_process import ServerError
from coevo.flows.servers.server_secret import VARIABLE, authorization_of, health_of, home, secret_of
from coevo.flows.servers.visits import LINKS
from coevo.lineage.atomic_files import make_private, write_atomically
from coevo.tasks.publish.mlflow.experiment import TAG, page_of
from coevo.tasks.publish.mlflow.tracking_store import make_database, tracking_store
from coevo.utilities.errors import CoevoError
from coevo.utilities.system_faults import fault

CLIENT = {
    "PREFECT_CLIENT_MAX_RETRIES": "4",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
}
"""Settings of Prefect's client: quiet, and half a minute instead of many until it gives up a dead server. States of
stages already record their end; a log line for each would take a quarter of a task's time. Revisions are logged,
see ``coevo.tasks.publish.prefect``."""

SERVER = {
    "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": "http://127.0.0.1:{port}",
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "15",
    "PREFECT_SERVER_UI_API_URL": "http://127.0.0.1:{port}/api",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",
}
"""Settings of the server. Leases of concurrency slots must survive a restart, else a schedule would hold its slot for
ever. Each state of a task is also an event, which takes four times the space of the state: events reach automations
and open pages but are not stored. Sessions are planned every 15 s instead of 60, since the immediate planning of a new
schedule misses it on a busy machine (it checks the changes of the last 6 s, every 5 s at best). The pages need the
port, else they contact 4200. The second version of the pages contacts amplitude.com, whatever is switched off."""


PAGES = {
    "MLFLOW_SERVER_ALLOWED_HOSTS": "127.0.0.1:{port},localhost:{port}",
    "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS": "http://127.0.0.1:{port}",
    "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE": "false",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}
"""Settings of MLflow's server: its own check of Host and Origin behind the guard's, whatever the user's environment;
and no jobs, which would take eight more processes and a gigabyte."""


UNSUITABLE = ("Failed to reach API at ", "Found incompatible versions: ")
"""First words of what Prefect says of a server that it cannot ask for its version, or that has another."""


def ensure_prefect(workspace: Path) -> str:
    """API URL of the Prefect server, started if none is named or running.

    Raises:
        ServerError: the server did not start.
    """
    named = os.environ.get("PREFECT_API_URL")
    if named:
        return named
    secret = secret_of(workspace)
    settings = {**SERVER, "PREFECT_HOME": str(home(workspace)), "PREFECT_SERVER_API_AUTH_STRING": secret}
    # A server without this secret has another health path and is replaced.
    return (
        ensure(workspace, "prefect", ["coevo.flows.servers.prefect_server"], health_of(secret), settings).url + "/api"
    )


def ensure_mlflow_ui(workspace: Path) -> str:
    """URL of MLflow's pages; their server is started if none is named or running.

    Raises:
        ServerError: the server did not start.
    """
    store = tracking_store(workspace)
    if store.artifacts is None:
        return store.uri
    make_private(workspace)
    secret = secret_of(workspace, "mlflow")
    places = {"_MLFLOW_SERVER_FILE_STORE": store.uri, "_MLFLOW_SERVER_ARTIFACT_ROOT": str(store.artifacts)}
    settings = {**PAGES, **places, "COEVO_MLFLOW_SECRET": secret}
    with FileLock(store.lock):
        make_database(store)
        return ensure(workspace, "mlflow", ["coevo.flows.servers.mlflow_server"], health_of(secret), settings).url


def use_mlflow(workspace: Path) -> None:
    """Give this process and its children the secret of the workspace's MLflow server, if they are told to use it.

    ``MLFLOW_TRACKING_URI`` names the server; another program on its port gets no secret.
    """
    named = os.environ.get("MLFLOW_TRACKING_URI", "").rstrip("/").replace("//localhost:", "//127.0.0.1:")
    with suppress(ServerError):  # damaged records: `coevo ui` and `coevo down` report them
        if not any(one.name == "mlflow" and one.url == named and one.runs() for one in recorded(workspace)):
            return
        user, _, password = secret_of(workspace, "mlflow").partition(":")
        os.environ |= {"MLFLOW_TRACKING_USERNAME": user, "MLFLOW_TRACKING_PASSWORD": password}


def use_prefect(workspace: Path) -> str:
    """Make this process and its children clients of ``ensure_prefect``.

    The server shows flows, tasks and their states; the console shows only the command's own lines. Prefect reads its
    settings when it is imported, and again here where a check of the run or a user's environment has imported it:
    otherwise each command would start a temporary server of its own.

    Raises:
        ServerError: the server did not start.
    """
    url = os.environ.get("PREFECT_API_URL")
    named = host_of(url, "PREFECT_API_URL") if url else ""
    reach_directly(*([named] if named and passes(named) else []))
    os.environ |= CLIENT
    if not os.environ.get("PREFECT_API_URL"):
        url = ensure_prefect(workspace)
        os.environ |= {"PREFECT_API_URL": url, "PREFECT_HOME": str(home(workspace)), VARIABLE: secret_of(workspace)}
    if "prefect" in sys.modules:
        _read_settings()
    return os.environ["PREFECT_API_URL"]


def _read_settings() -> None:
    """Make Prefect read its settings again if they have changed.

    Setting up its log takes locks that the heartbeat of a running flow takes in another order: within a flow, where
    they are the same, doing so for nothing could wait forever.
    """
    from prefect.context import refresh_global_settings_context
    from prefect.logging.configuration import setup_logging
    from prefect.settings import Settings, get_current_settings

    if Settings() == get_current_settings():
        return
    refresh_global_settings_context()
    setup_logging(incremental=False)


@contextmanager
def prefect_in_use(then: str = "committed data is safe, repeat the command") -> Iterator[None]:
    """Call Prefect within: errors of its client about a dead or failing server become one line.

    An error of the run that Prefect could not report to the server, such as a full disk, is raised in its place.

    Args:
        then: remedy, for the end of that line.

    Raises:
        ServerError: the server no longer answers, or answers with errors only.
    """
    from httpx import HTTPStatusError, TransportError

    try:
        yield
    except (TransportError, HTTPStatusError, RuntimeError) as error:
        cause = error.__cause__ if str(error).startswith(UNSUITABLE) else error
        if isinstance(cause, HTTPStatusError):
            if (first := _unreported(error)) is not None:
                raise first from None
            raise _refused(cause.response.status_code, then) from error
        if cause is error and not isinstance(error, TransportError):
            raise
        drop_events()
        if isinstance(cause, TransportError):
            raise gone(then) from error
        url = os.environ["PREFECT_API_URL"]
        raise ServerError(f"{url} is no Prefect server of a version that fits: correct PREFECT_API_URL") from error


def going_on(run: str) -> str:
    """Remedy for a run that has stopped."""
    return f"what is committed is safe, continue with `coevo resume {run}`"


def gone(then: str) -> ServerError:
    """Error for a run whose server is dead.

    Args:
        then: remedy, for the end of the line.
    """
    return ServerError(f"the Prefect server at {os.environ['PREFECT_API_URL']} has gone: {then}")


def drop_events() -> None:
    """Drop the queued events for a dead server, each of which would delay the end of the process by nine seconds.

    Prefect's public calls send queued events (``drain``) or wait for them (``wait_until_empty``), hence the private
    names.
    """
    from prefect.events.worker import EventsWorker

    for service in list(EventsWorker._instances.values()):  # type: ignore[misc]
        with suppress(Empty):
            while True:
                service._queue.get_nowait()
                service._queue.task_done()


def _unreported(error: BaseException) -> BaseException | None:
    """Error with a message of ours that was being handled when another one occurred, if there is one."""
    found = error.__context__
    while not (found is None or isinstance(found, CoevoError) or fault(found)):
        found = found.__context__
    return found


def _refused(status: int, then: str) -> ServerError:
    url = os.environ["PREFECT_API_URL"]
    if status in (401, 403):
        return ServerError(
            f"the Prefect server at {url} refuses us ({status}): set {VARIABLE} to what it asks for; {then}"
        )
    return ServerError(
        f"the Prefect server at {url} answers {status}: see its log, and whether its disk has room; {then}"
    )


def prefect_pages(workspace: Path) -> str:
    """URL of Prefect's pages: a link that works once, or the address of a server that coevo did not start.

    Raises:
        ServerError: the server did not start, or has stopped.
    """
    api = ensure_prefect(workspace)
    pages = api.removesuffix("/api")
    if pages not in (server.url for server in recorded(workspace)):
        return pages
    return new_link(pages, secret_of(workspace), "Prefect")


def new_link(pages: str, secret: str, name: str) -> str:
    """A link to the pages of a server. Raises ``ServerError`` if it gives none."""
    try:
        return pages + str(ask(pages + LINKS, secret)["link"])
    except OSError as error:
        raise ServerError(
            f"the {name} server at {pages} gives no link ({error}): see its log, then try again"
        ) from None


def ask(url: str, secret: str, **body: object) -> Any:
    """Post a request with the secret to a server of the workspace; return its JSON."""
    headers = {"Content-Type": "application/json", "Authorization": authorization_of(secret)}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def page_to(link: str, workspace: Path, server: str = "prefect") -> str:
    """Write a page that redirects to a link; return its URL. Command lines of browsers are public, this file is not."""
    page = home(workspace, server) / "open.html"
    text = f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">\n'
    write_atomically(page, text, private=True)
    return page.as_uri()


SEARCH = "/api/2.0/mlflow/experiments/search"
NEWEST: dict[str, Any] = {"filter": f"tags.`{TAG}` LIKE '%'", "order_by": ["creation_time DESC"], "max_results": 1}


def mlflow_pages(workspace: Path) -> str:
    """A link that works once, to the newest experiment with the view, or to MLflow's first page without one.

    It is the address of the server if coevo did not start it.

    Raises:
        ServerError: the server did not start, or gives no link.
    """
    url = ensure_mlflow_ui(workspace)
    if url not in (server.url for server in recorded(workspace)):
        return url
    secret = secret_of(workspace, "mlflow")
    link = new_link(url, secret, "MLflow")
    try:
        found = ask(url + SEARCH, secret, **NEWEST).get("experiments", [])
    except OSError:  # the first page shows what is wrong
        return link
    return link + page_of(found[0]["experiment_id"]) if found else link
