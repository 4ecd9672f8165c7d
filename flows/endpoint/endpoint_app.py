"""The application of a packaged agent.

POST /invocations                              turns of episodes, as MLflow's scoring server takes rows
POST [/s/SESSION]/v1/chat/completions          OpenAI's dialect
POST [/s/SESSION]/v1/messages                  Anthropic's dialect
GET  [/s/SESSION]/v1/models                    the policy that answers
GET  /ping, /health, /version                  as MLflow's scoring server answers
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from coevo.flows.endpoint.chat_routes import DIALECTS, fail, is_chat, refuse
from coevo.flows.endpoint.model import VERSION, Model, UnfitError
from coevo.flows.endpoint.origin_guard import Guard, Hosts, answer_of, refusal
from coevo.flows.endpoint.request_body import body_of, first_mistake, require_json
from coevo.flows.endpoint.request_limits import Limits
from coevo.utilities.errors import CoevoError

TURN = 32
"""Bytes that a turn counts in addition to its text."""
FORMATS = ("dataframe_records", "dataframe_split", "inputs", "instances")
"""Keys under which MLflow's clients send rows."""
SESSION = "/s/{session}"
"""Beginning of an address that names a session."""


class Strict(BaseModel):
    """A part of a request: unknown fields and other types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TurnFields(Strict):
    """A previous turn."""

    observation: str
    action: str
    feedback: str


class TurnRow(Strict):
    """A turn to answer. Optional fields may be missing or null."""

    instruction: str
    observation: str
    scope: str | None = None
    kind: str | None = None
    task: str | None = None
    guide: str | None = None
    history: list[TurnFields] | None = Field(default=None, fail_fast=True)

    def size(self) -> int:
        """Bytes of all its text, plus ``TURN`` per turn: a turn without text takes tokens, too."""
        return TURN * len(self.history or ()) + sum(len(text.encode()) for text in self._texts() if text)

    def complete(self) -> dict[str, Any]:
        """All fields with defaults, since the rows of a table have the same fields."""
        history = [turn.model_dump() for turn in self.history or ()]
        optional = {"scope": self.scope or "", "kind": self.kind or "", "task": self.task or self.instruction}
        optional |= {"guide": self.guide} if self.guide else {}
        return {"instruction": self.instruction, "observation": self.observation, **optional, "history": history}

    def _texts(self) -> Iterator[str | None]:
        yield from (self.instruction, self.observation, self.scope, self.kind, self.task, self.guide)
        for turn in self.history or ():
            yield from (turn.observation, turn.action, turn.feedback)


class Params(Strict):
    """Parameters of a request."""

    seed: int = Field(default=-1, ge=-1, lt=2**63)
    logprobs: bool = False


class Split(Strict):
    """Rows as MLflow's client sends a table: column names once, then the values."""

    columns: list[str]
    data: list[list[Any]]
    index: list[Any] | None = None

    def rows(self) -> list[dict[str, Any]]:
        """One mapping per row.

        Raises:
            HTTPException: 422 if a row does not fit the columns, or a column stands there twice.
        """
        twice = next((name for name in self.columns if self.columns.count(name) > 1), None)
        if twice is not None:
            raise refusal(422, f"dataframe_split: the column {twice[:80]!r} stands there twice: leave one of them out")
        if any(len(row) != len(self.columns) for row in self.data):
            raise refusal(422, f"dataframe_split: each row has the {len(self.columns)} values of the columns")
        return [dict(zip(self.columns, row, strict=True)) for row in self.data]


ROWS = TypeAdapter(Annotated[list[TurnRow], Field(min_length=1, fail_fast=True)])


class ModelInput(NamedTuple):
    """Input of the model."""

    rows: list[dict[str, Any]]
    params: dict[str, Any]


def application(model: Model, limits: Limits, hosts: Hosts) -> Starlette:
    """Create the application for a model.

    Args:
        model: a packaged agent.
        limits: limits of a request.
        hosts: names that the server answers to.
    """

    async def invoke(request: Request) -> Response:
        require_json(request)
        asked = await asyncio.to_thread(question, await body_of(request, limits.body), limits)
        try:
            return JSONResponse({"predictions": await asyncio.to_thread(model.predict, *asked)})
        except UnfitError as error:
            raise refusal(422, str(error)) from None

    async def complete(request: Request) -> Response:
        require_json(request)
        call = await model.chat.read(request)
        session = model.sessions.use(request.path_params.get("session", ""), call.task)
        exchange = await model.chat.prompted(session, call)
        return await model.chat.respond(request, exchange, asyncio.ensure_future(model.chat.reply(exchange)))

    async def models(_: Request) -> Response:
        return model.chat.models()

    chats = [Route(f"{root}{path}", complete, methods=["POST"]) for root in ("", SESSION) for path in DIALECTS]
    chats += [Route(f"{root}/v1/models", models) for root in ("", SESSION)]
    alive = [Route(path, _alive) for path in ("/ping", "/health")]
    return Starlette(
        routes=[*alive, *chats, Route("/version", _version), Route("/invocations", invoke, methods=["POST"])],
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={HTTPException: _refuse, CoevoError: _refuse, Exception: _fail},
    )


async def _alive(_: Request) -> Response:
    return Response("\n", media_type="application/json")


async def _version(_: Request) -> Response:
    return Response(VERSION, media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    if is_chat(request):
        return await refuse(request, error)
    assert isinstance(error, HTTPException)
    return answer_of(error)


async def _fail(request: Request, error: Exception) -> Response:
    """Answer of one line; the server's log gets the traceback."""
    if is_chat(request):
        return await fail(request, error)
    return JSONResponse({"error_code": "INTERNAL_ERROR", "message": "the agent failed: see the server's log"}, 500)


def question(body: bytes, limits: Limits) -> ModelInput:
    """Parse and validate a request.

    Raises:
        HTTPException: 413 for too many or too long rows, 422 for another form.
    """
    try:
        given = from_json(body)
        rows = ROWS.validate_python(_rows(given, limits.rows))
        params = Params.model_validate({} if given.get("params") is None else given["params"])
    except ValidationError as error:
        raise refusal(422, first_mistake(error, TurnRow, Params, Split)) from None
    except ValueError as error:
        raise refusal(422, f"not JSON: {error}") from None
    _check_sizes(rows, limits.text)
    return ModelInput([row.complete() for row in rows], params.model_dump())


def _check_sizes(rows: Iterable[TurnRow], most: int) -> None:
    for number, row in enumerate(rows):
        if row.size() > most:
            raise refusal(413, f"row {number} has {row.size()} bytes of text: at most {most}")


def _rows(given: Any, most: int) -> Any:
    """The rows of a request, with only their number checked."""
    found = [name for name in given if name != "params"] if isinstance(given, dict) else []
    if len(found) != 1 or found[0] not in FORMATS:
        raise refusal(422, f"a request is an object of {' or '.join(FORMATS)} with the rows, and of params")
    sent = given[found[0]]
    listed = sent.get("data") if isinstance(sent, dict) else sent
    if isinstance(listed, list) and len(listed) > most:
        raise refusal(413, f"{len(listed)} rows: at most {most}")
    return Split.model_validate(sent).rows() if found == ["dataframe_split"] else sent
