"""The body of a request, within its limit, and what is wrong with it."""

import asyncio

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from coevo.flows.endpoint.origin_guard import refusal
from coevo.utilities.errors import nearest

BODY_TIMEOUT_S = 60.0
"""Seconds for a body to arrive."""
MAX_DISCARDED_BYTES = 64 * 2**20
"""Bytes of a refused body that are read and dropped: a client that is still sending does not see the answer."""


def require_json(request: Request) -> None:
    """Make sure that a request says it is JSON: a page of another origin cannot without asking first.

    Raises:
        HTTPException: 415 if it does not.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise refusal(415, "send JSON, with Content-Type: application/json")


async def body_of(request: Request, limit: int) -> bytes:
    """The body of a request; memory never holds more than the limit.

    Raises:
        HTTPException: 413 for a longer one, 408 for one that does not arrive, 400 for one that ends early.
    """
    # A client that waits for permission to send its body, as curl does, has not sent any of it.
    if int(request.headers.get("content-length", "0")) > (
        limit if "expect" in request.headers else MAX_DISCARDED_BYTES
    ):
        raise _too_large(limit)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await _read(request, limit)
    except TimeoutError:
        raise refusal(408, f"the body did not arrive within {BODY_TIMEOUT_S:g} s") from None
    except ClientDisconnect:
        raise refusal(400, "the body ended early") from None


def first_mistake(error: ValidationError, *forms: type[BaseModel]) -> str:
    """The first mistake of a request, in a line.

    Args:
        error: what the validation found.
        forms: models of the request, among whose fields is the nearest to an unknown one.
    """
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where, said = [str(part) for part in problem["loc"]], problem["msg"]
    if problem["type"] == "extra_forbidden":
        fields = {name for form in forms for name in _fields(form)}
        said = f"no such field.{nearest(where[-1], fields) or ' Leave it out.'}"
    return f"{'.'.join(where)}: {said}".removeprefix(": ")


def _fields(form: type[BaseModel]) -> set[str]:
    """Names of the fields of a model and of its parts."""
    schema = form.model_json_schema()
    return {name for part in (schema, *schema.get("$defs", {}).values()) for name in part.get("properties", ())}


async def _read(request: Request, limit: int) -> bytes:
    size, kept = 0, bytearray()
    async for part in request.stream():
        size += len(part)
        if size <= limit:
            kept += part
        elif size > MAX_DISCARDED_BYTES:
            break
    if size > limit:
        raise _too_large(limit)
    return bytes(kept)


def _too_large(limit: int) -> HTTPException:
    return refusal(413, f"the body has more than {limit} bytes")
