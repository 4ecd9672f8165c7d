"""The application: ``/invocations``, ``/ping``, ``/health`` and ``/version``, as in MLflow's scoring server."""

import asyncio

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from coevo.flows.endpoint.model import VERSION, Model, UnfitError
from coevo.flows.endpoint.origin_guard import Guard, Hosts, answer_of, refusal
from coevo.flows.endpoint.question import question
from coevo.flows.endpoint.request_limits import Limits

PATIENCE = 60.0
"""Seconds for a body to arrive."""
DISCARDED = 64 * 2**20
"""Bytes of a refused body that are read and dropped: a client that is still sending does not see the answer."""


def application(model: Model, limits: Limits, hosts: Hosts) -> Starlette:
    """Create the application for a model.

    Args:
        model: a packaged agent.
        limits: limits of a request.
        hosts: names that the server answers to.
    """

    async def invoke(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise refusal(415, "send JSON, with Content-Type: application/json")
        asked = await asyncio.to_thread(question, await _body(request, limits.body), limits)
        try:
            return JSONResponse({"predictions": await asyncio.to_thread(model.predict, *asked)})
        except UnfitError as error:
            raise refusal(422, str(error)) from None

    alive = [Route(path, _alive) for path in ("/ping", "/health")]
    return Starlette(
        routes=[*alive, Route("/version", _version), Route("/invocations", invoke, methods=["POST"])],
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={HTTPException: _refuse, Exception: _fail},
    )


async def _alive(_: Request) -> Response:
    return Response("\n", media_type="application/json")


async def _version(_: Request) -> Response:
    return Response(VERSION, media_type="application/json")


async def _body(request: Request, limit: int) -> bytes:
    """The body of a request; memory never holds more than the limit."""
    # A client that waits for permission to send its body, as curl does, has not sent any of it.
    if int(request.headers.get("content-length", "0")) > (limit if "expect" in request.headers else DISCARDED):
        raise _too_large(limit)
    try:
        async with asyncio.timeout(PATIENCE):
            return await _read(request, limit)
    except TimeoutError:
        raise refusal(408, f"the body did not arrive within {PATIENCE:g} s") from None
    except ClientDisconnect:
        raise refusal(400, "the body ended early") from None


async def _read(request: Request, limit: int) -> bytes:
    size, kept = 0, bytearray()
    async for part in request.stream():
        size += len(part)
        if size <= limit:
            kept += part
        elif size > DISCARDED:
            break
    if size > limit:
        raise _too_large(limit)
    return bytes(kept)


def _too_large(limit: int) -> HTTPException:
    return refusal(413, f"the body has more than {limit} bytes")


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return answer_of(error)


async def _fail(_: Request, __: Exception) -> Response:
    """Answer of one line; the server's log gets the traceback."""
    return JSONResponse({"error_code": "INTERNAL_ERROR", "message": "the agent failed: see the server's log"}, 500)
