"""Connection to an endpoint: the headers that leave this machine, and the bytes that are taken."""

import os
import re
import ssl
from collections.abc import AsyncIterator
from functools import cache
from time import monotonic
from typing import cast

import httpx2
from openai import AsyncOpenAI

from coevo.configs.bank.writer_model_config import EndpointAccess
from coevo.configs.proxies import passes, reach_directly
from coevo.models.writer_models.answer import MAX_BODY_BYTES
from coevo.utilities.errors import CoevoError

SENT = ("host", "connection", "accept", "content-type", "content-length")
"""Headers of a request that stay as they are; the client would also send those of its own environment variables."""
CONNECT = 10.0
"""Maximum seconds for a connection."""


def key_of(config: EndpointAccess) -> str:
    """API key in the environment; empty for an endpoint without keys.

    Raises:
        CoevoError: the variable is missing, or holds no key.
    """
    if config.key is None:
        return ""
    key = os.environ.get(config.key, "")
    if not key and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", config.key):
        # Not repeated: it may be the key itself.
        raise CoevoError(
            f"{config.section}.key: the environment has no variable of this name; name the environment variable that "
            "holds the API key, such as OPENAI_API_KEY, not the key"
        )
    if not key:
        raise CoevoError(
            f"{config.section}.key={config.key}: the environment has no such variable; set it to the API key of "
            f"{config.url}"
        )
    if not re.fullmatch(r"[!-~]+", key):
        raise CoevoError(f"{config.key} is not an API key: use printable ASCII characters without spaces")
    return key


def check_address(config: EndpointAccess) -> None:
    """Check that a request can be sent to an address, and that proxies leave it alone if it is this machine.

    Raises:
        CoevoError: it has no meaning, or a variable of a proxy on the way has none.
    """
    try:
        if not passes(httpx2.URL(config.url).host):
            reach_directly()
    except httpx2.InvalidURL as error:
        raise CoevoError(f"{config.section}.url={config.url} is not an address ({error}): correct it") from None


def client_of(config: EndpointAccess, key: str) -> AsyncOpenAI:
    """Client that sends the key to the endpoint alone, repeats nothing and follows no redirection."""

    async def prepare(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in SENT]:
            del request.headers[name]
        request.headers["User-Agent"] = "coevo"
        request.headers["Accept-Encoding"] = "identity"
        if key:
            request.headers["Authorization"] = f"Bearer {key}"

    async def limit(response: httpx2.Response) -> None:
        # A compressed body, which nobody asked for, could fill the memory: it is taken as it is.
        response.headers.pop("content-encoding", None)
        response.encoding = "utf-8"  # any other codec that an endpoint names could fail, or decompress
        response.stream = _Limited(cast(httpx2.AsyncByteStream, response.stream), monotonic() + config.timeout)

    # A web proxy cannot reach this machine's ports, and must not see what the user excepts.
    trust_env = not passes(httpx2.URL(config.url).host)
    http = httpx2.AsyncClient(
        verify=_certificates(trust_env),
        timeout=httpx2.Timeout(config.timeout, connect=min(CONNECT, config.timeout)),
        limits=httpx2.Limits(max_connections=config.concurrency),
        trust_env=trust_env,
        event_hooks={"request": [prepare], "response": [limit]},
        follow_redirects=False,
    )
    return AsyncOpenAI(
        api_key="none",  # ``prepare`` sends the real one
        base_url=config.url,
        timeout=http.timeout,
        max_retries=0,  # ``ChatEndpoint`` repeats, at one pace for all requests
        http_client=http,
    )


@cache
def _certificates(trust_env: bool) -> ssl.SSLContext:
    """Certificates that connections accept, read once: they take a tenth of a second."""
    return httpx2.create_ssl_context(trust_env=trust_env)


class _Limited(httpx2.AsyncByteStream):
    """Body that ends soon after ``MAX_BODY_BYTES``, and fails at a time."""

    def __init__(self, stream: httpx2.AsyncByteStream, until: float) -> None:
        self._stream, self._until = stream, until

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            if monotonic() > self._until:
                raise httpx2.ReadTimeout("the body does not end")
            yield chunk
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()
