"""The application of the live page. It reads, but for two requests that want the token: a decision, and a retirement.

    GET  /runs                              runs of the workspace
    GET  /runs/RUN?rev=N                    success, update, cost, settings, health, what waits
    GET  /runs/RUN/revisions?rev=           the values of the figures
    GET  /runs/RUN/bank?rev=&from=&q=&scope=
    GET  /runs/RUN/candidates?rev=          candidates that the revision judged
    GET  /runs/RUN/lessons/ID?rev=
    GET  /runs/RUN/episodes?rev=&set=&kind=&outcome=&reason=&use=&lesson=
    GET  /runs/RUN/r/N/tasks/TASK           a group side by side
    GET  /runs/RUN/r/N/training/K           an episode, also /held-out/K and /played-E/K; its turn T is at #tT
    GET  /runs/RUN/approval                 what waits for a decision
    GET  /runs/RUN/curve.json, /runs/RUN/live
    POST /runs/RUN/approval, /runs/RUN/lessons/ID/retire

A browser runs only the scripts of this package and loads nothing from elsewhere, whatever a text holds.
"""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from coevo.flows.endpoint.request_body import body_of
from coevo.flows.watch import bank_views, episode_views, run_views
from coevo.flows.watch.index_build import UNREADABLE
from coevo.flows.watch.page_templates import STATIC, render
from coevo.flows.watch.watched_run import NotIndexedError, WatchedRun
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank_address import connect
from coevo.utilities.errors import CoevoError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
POLL_INTERVAL_S, STATE_INTERVAL_S = 0.4, 1.0
"""Seconds between two looks at the branch of a run, and at all that its status depends on."""
MAX_STREAMS = 64
"""Most open streams of events; each browser opens one for all of its pages."""
MAX_FORM_BYTES = 4096
MAX_WATCHED = 64
"""Most runs whose state is kept between requests."""
PageView = Callable[..., dict[str, Any]]


class WatchSite:
    """The runs of a workspace, as pages.

    Args:
        workspace: the workspace.
        token: what a decision or a retirement needs.
        escaping: False to leave texts as they are, for a test of what else keeps them from acting.
    """

    def __init__(self, workspace: Workspace, token: str, escaping: bool = True) -> None:
        self.workspace = workspace
        self._token, self._escaping = token, escaping
        self._runs: dict[str, WatchedRun] = {}
        self._lock = Lock()
        self.streams = 0

    def run(self, name: str) -> WatchedRun:
        """A run by its name, with the revisions that it has now.

        Raises:
            HTTPException: 404 if there is none.
        """
        with self._lock:
            found = self._runs.get(name)
            if found is None or not found.paths.root.exists():
                try:
                    found = WatchedRun(self.workspace, name)
                except CoevoError as error:
                    raise HTTPException(404, str(error)) from None
                while len(self._runs) >= MAX_WATCHED:
                    self._runs.pop(next(iter(self._runs)))
                self._runs[name] = found
        found.refresh()
        return found

    def page(self, request: Request, template: str, values: dict[str, Any], status: int = 200) -> HTMLResponse:
        """A page, whose links lead on from where it is."""
        root = "../" * (request.scope["path"].count("/") - 1)
        base = {"root": root or "./", "query": _query(request), "run": None, "section": ""}
        text = render(template, base | values, self._escaping)
        return HTMLResponse(text, status, HEADERS | {"Cache-Control": "no-store"})

    def may_change(self, given: str) -> bool:
        """True if a text is the token."""
        return hmac.compare_digest(given.encode(), self._token.encode())

    def runs(self, request: Request) -> Response:
        """List the runs."""
        rows = []
        for paths in self.workspace.directories():
            run = WatchedRun(self.workspace, paths.name)
            rows.append((paths.name, str(run.standing(run.committed()).status)))
        return self.page(request, "runs.html", {"runs": rows})

    def home(self, request: Request) -> Response:
        """Lead to the list of runs, whose script leads on to the run that the address names."""
        return RedirectResponse("runs", 303, HEADERS)

    def load(self) -> None:
        """Load LanceDB and the distributions of the intervals, which take most of a second, before any page asks."""
        import scipy.special  # noqa: F401

        with TemporaryDirectory() as empty:
            connect(Path(empty))

    def warm(self) -> None:
        """Read what the first pages of the last run need, which takes seconds where its index has to be built."""
        for paths in self.workspace.runs()[-1:]:
            run = WatchedRun(self.workspace, paths.name)
            run.standing(None)
            with suppress(*UNREADABLE), run.reader() as reader:
                run.bank(reader.manifest()).judged("")

    def view(self, template: str, section: str, make: PageView, request: Request) -> Response:
        """A page of a run at a revision."""
        run = self.run(request.path_params["run"])
        asked = request.path_params.get("revision")
        query = dict(request.query_params)
        revision = run_views.number(query, "rev") if asked is None else int(asked)
        given = {name: value for name, value in request.path_params.items() if name not in ("run", "revision")}
        try:
            with run.reader(revision) as reader:
                head = reader.manifest(reader.last)
                values = {
                    "run": run.name,
                    "revision": reader.revision,
                    "last": reader.last,
                    "follows": revision is None,
                    "section": section,
                    "standing": run.standing(head),
                    "waiting": bool(head.state.get("waiting")),
                }
                return self.page(request, template, values | make(run, reader, query, **given))
        except CoevoError as error:
            waits = isinstance(error, NotIndexedError)
            message = {"run": run.name, "message": str(error), "standing": run.standing(None), "waits": waits}
            return self.page(request, "message.html", message | {"section": section}, 503 if waits else 404)

    def curve(self, request: Request) -> Response:
        """Columns of the figures."""
        run = self.run(request.path_params["run"])
        try:
            with run.reader(run_views.number(dict(request.query_params), "rev")) as reader:
                return JSONResponse(run_views.curve(reader), headers=HEADERS)
        except CoevoError as error:
            return JSONResponse({"message": str(error)}, 503, HEADERS)

    async def live(self, request: Request) -> Response:
        """Stream the status and the phases of a run, and the number of its last revision, as they change."""
        run = await asyncio.to_thread(self.run, request.path_params["run"])
        if self.streams >= MAX_STREAMS:
            raise HTTPException(503, "too many pages are open")
        headers = HEADERS | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._events(run, request), media_type="text/event-stream", headers=headers)

    async def _events(self, run: WatchedRun, request: Request) -> AsyncIterator[str]:
        self.streams += 1
        try:
            before, seen, due = "", None, 0.0
            while True:
                changed = run.changed()
                if changed != seen or monotonic() >= due:
                    if await request.is_disconnected():
                        return
                    seen, due = changed, monotonic() + STATE_INTERVAL_S
                    # A thread costs more than the few files, and is for an index that does not have all revisions.
                    state = _state(run) if run.is_current() else await asyncio.to_thread(_state, run)
                    said = json.dumps(state)
                    if said != before:
                        yield f"data: {said}\n\n"
                    before = said
                await asyncio.sleep(POLL_INTERVAL_S)
        finally:
            self.streams -= 1

    async def change(self, request: Request) -> Response:
        """Decide about a proposal, or retire an entry."""
        if request.headers.get("origin") != f"{request.url.scheme}://{request.headers.get('host')}":
            raise HTTPException(403, "only a page of this server may ask this")
        body = await body_of(request, MAX_FORM_BYTES)
        form = {name: values[-1] for name, values in parse_qs(body.decode(errors="replace")).items()}
        if not self.may_change(form.get("token", "")):
            raise HTTPException(403, "the token is wrong: `coevo watch` prints it")
        run = await asyncio.to_thread(self.run, request.path_params["run"])
        entry = request.path_params.get("name")
        try:
            said = await asyncio.to_thread(partial(_retire, run, entry) if entry else partial(_decide, run), form)
        except CoevoError as error:
            raise HTTPException(409, str(error)) from None
        values = {"run": run.name, "message": said, "standing": run.standing(None), "section": ""}
        return self.page(request, "message.html", values)

    def refuse(self, request: Request, error: Exception) -> Response:
        """A page about a refusal."""
        assert isinstance(error, HTTPException)
        values = {"message": error.detail, "standing": None}
        return self.page(request, "message.html", values, error.status_code)


def watch_app(site: WatchSite) -> Starlette:
    """Create the application."""

    def page(path: str, template: str, section: str, make: PageView) -> Route:
        return Route(f"/runs/{{run}}{path}", partial(site.view, template, section, make))

    post = ["POST"]
    return Starlette(
        routes=[
            Route("/", site.home),
            Route("/runs", site.runs),
            page("", "overview.html", "overview", run_views.overview),
            page("/revisions", "revisions.html", "overview", run_views.revisions),
            page("/bank", "bank.html", "bank", bank_views.bank),
            page("/candidates", "candidates.html", "bank", bank_views.candidates),
            page("/lessons/{name}", "lesson.html", "bank", bank_views.lesson),
            page("/episodes", "episodes.html", "episodes", episode_views.episodes),
            page("/r/{revision:int}/tasks/{task}", "group.html", "episodes", episode_views.group),
            page("/r/{revision:int}/{kind}/{position:int}", "episode.html", "episodes", episode_views.episode),
            page("/approval", "approval.html", "approval", run_views.approval),
            Route("/runs/{run}/curve.json", site.curve),
            Route("/runs/{run}/live", site.live),
            Route("/runs/{run}/approval", site.change, methods=post),
            Route("/runs/{run}/lessons/{name}/retire", site.change, methods=post),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)],
        exception_handlers={HTTPException: site.refuse},
    )


def _query(request: Request) -> Callable[..., str]:
    """Query string of the page with some values changed; None removes one."""

    def query(**changes: object) -> str:
        kept = dict(request.query_params) | changes
        return "?" + urlencode({name: value for name, value in kept.items() if value not in (None, "")})

    return query


def _state(run: WatchedRun) -> dict[str, Any]:
    run.refresh()
    head = run.head()
    found = run.standing(head)
    state = {"status": str(found.status), "revision": -1 if head is None else head.revision, "run": run.name}
    if found.phases is None:
        return state | {"current": "", "phases": [], "warnings": [], "engines": list(found.engines)}
    told = asdict(found.phases)
    phases = [
        {"text": each["text"], "seconds": round(each["seen"] - each["began"]), "name": each["name"]}
        for each in told["phases"]
    ]
    told_now = {"current": told["current"], "phases": phases, "warnings": list(told["warnings"])}
    return state | told_now | {"engines": list(found.engines)}


def _decide(run: WatchedRun, form: dict[str, str]) -> str:
    from coevo.flows.pending import decide_run
    from coevo.tasks.run.approval import Vote

    if form.get("vote") not in ("yes", "no"):
        raise CoevoError("choose yes or no")
    revision = run_views.number(form, "revision")
    vote = Vote(form["vote"] == "yes", _name(form))
    made = decide_run(f"{run.name}@{revision}" if revision is not None else run.name, vote, run.workspace)
    return f"{run.name}@{made.revision}: {'approved' if vote.approved else 'turned down'} by {vote.by}"


def _retire(run: WatchedRun, entry: str, form: dict[str, str]) -> str:
    from coevo.flows.upkeep.change_by_hand import retire

    gone, made = retire(run.name, entry, form.get("reason", ""), _name(form), run.workspace)
    if made is None:
        return f"{gone.id} was already retired in revision {gone.retired}"
    return f"{run.name}@{made.revision}: retired {gone.id}"


def _name(form: dict[str, str]) -> str:
    from getpass import getuser

    return form.get("by", "").strip() or getuser()
