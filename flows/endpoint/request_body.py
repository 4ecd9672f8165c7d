"""The body of a request, read within a limit of bytes and of time."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from coevo.flows.endpoint.origin_guard import refusal

BODY_TIMEOUT_S = 60.0
"""Seconds for a body to arrive."""
MAX_DISCARDED_BYTES = 64 * 2**20
"""Bytes of a refused body that are read and dropped: a client that is still sending does not see the answer."""


async def body_of(request: Request, limit: int) -> bytes:
    """The body of a request; memory never holds more than the limit.

    Raises:
        HTTPException: 413 for a longer one, 408 for one that does not arrive in time, 400 for one that ends early.
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
