"""Client of a server of the Model Context Protocol, for its tools alone.

It speaks over the standard streams of a process, or streamable HTTP. What a server sends is bounded and checked; a
question of its own (a model, a file) is refused.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from itertools import count
from typing import Any, Protocol, TypeVar
from urllib.error import HTTPError
from urllib.request import Request

from pydantic import BaseModel, Field, JsonValue, ValidationError

from coevo.configs.proxies import opener_of
from coevo.utilities.errors import CoevoError

CheckedT = TypeVar("CheckedT", bound=BaseModel)
VERSION = "2025-06-18"
"""Version of the protocol that is asked for."""
MAX_MESSAGE_BYTES = 2**24
"""Most bytes of a message, and of a response."""
TIMEOUT_S = 600.0
"""Most seconds of a request; the limits of the simulator are shorter."""
STOP_TIMEOUT_S = 2.0
"""Seconds that a server has to end after its input ended."""
MAX_PAGES = 100
"""Most pages of the list of tools."""
UNKNOWN_METHOD = -32601
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")
"""Variables that a server gets; others may hold secrets."""


class McpTool(BaseModel):
    """A tool as a server describes it."""

    name: str = Field(min_length=1, max_length=200)
    description: str | None = Field(default=None, max_length=10_000)
    inputSchema: dict[str, JsonValue] = Field(default_factory=dict)  # noqa: N815 - the protocol's name

    @property
    def schema_of_function(self) -> dict[str, Any]:
        """Schema for a policy."""
        return {"name": self.name, "description": self.description or "", "parameters": self.inputSchema}


class _Block(BaseModel):
    type: str
    text: str = ""


class ToolResult(BaseModel):
    """Result of a call."""

    content: list[_Block] = Field(default_factory=list)
    isError: bool = False  # noqa: N815 - the protocol's name

    @property
    def text(self) -> str:
        """Texts of the result; other parts are named."""
        return "\n".join(each.text if each.type == "text" else f"[{each.type[:40]}]" for each in self.content)


class _ToolList(BaseModel):
    tools: list[McpTool]
    nextCursor: str | None = None  # noqa: N815 - the protocol's name


class _RpcMessage(BaseModel):
    id: int | str | None = None
    method: str | None = None
    result: dict[str, JsonValue] | None = None
    error: dict[str, JsonValue] | None = None


class CallError(CoevoError):
    """A request that the server refuses."""


class Transport(Protocol):
    """Way to a server."""

    def exchange(self, message: Mapping[str, Any]) -> Iterator[bytes]:
        """Send a message, and read those that follow, one JSON text each; nothing may follow a notification."""
        ...

    def agreed(self, version: str) -> None:
        """Note the version of the protocol that both sides speak."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


class McpClient:
    """A session with a server.

    Args:
        transport: way to it.

    Raises:
        CoevoError: it does not answer as the protocol says.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport, self._numbers = transport, count(1)
        about = {"name": "coevo", "version": "1"}
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        transport.agreed(str(self._asked("initialize", hello).get("protocolVersion", VERSION))[:40])
        for _ in transport.exchange({"jsonrpc": "2.0", "method": "notifications/initialized"}):
            break

    def tools(self) -> list[McpTool]:
        """All tools of the server. Raises ``CoevoError``."""
        found, cursor = list[McpTool](), None
        for _ in range(MAX_PAGES):
            page = _checked(_ToolList, self._asked("tools/list", {} if cursor is None else {"cursor": cursor}))
            found, cursor = found + page.tools, page.nextCursor
            if cursor is None:
                return found
        raise CoevoError(f"the MCP server lists its tools on more than {MAX_PAGES} pages")

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool. Raises ``CallError`` for a call that the server refuses, else ``CoevoError``."""
        return _checked(ToolResult, self._asked("tools/call", {"name": name, "arguments": dict(arguments)}))

    def close(self) -> None:
        """End the session."""
        self._transport.close()

    def _asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        number = next(self._numbers)
        sent = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for line in self._transport.exchange(sent):
            if not line.strip():
                continue
            message = _checked(_RpcMessage, line)
            if message.method is not None and message.id is not None:
                self._answer(message)
            elif message.id == number and message.error is not None:
                raise CallError(str(message.error.get("message", "error"))[:1000])
            elif message.id == number:
                return message.result or {}
        raise CoevoError(f"the MCP server does not answer {method}")

    def _answer(self, message: _RpcMessage) -> None:
        """Answer a question of the server: it is there, and offers nothing."""
        refusal = {"error": {"code": UNKNOWN_METHOD, "message": "not offered"}}
        answer = {"result": {}} if message.method == "ping" else refusal
        for _ in self._transport.exchange({"jsonrpc": "2.0", "id": message.id, **answer}):
            break


def _checked(kind: type[CheckedT], value: bytes | Mapping[str, Any]) -> CheckedT:
    """JSON text, or a value of JSON, as a part of the protocol. Raises ``CoevoError``."""
    try:
        return kind.model_validate_json(value) if isinstance(value, bytes) else kind.model_validate(value)
    except ValidationError as error:
        raise CoevoError(f"the MCP server sends no {kind.__name__.strip('_')}: {error.errors()[0]['msg']}") from None


class ProcessTransport:
    """Standard streams of a process, one message a line.

    Args:
        command: the command.

    Raises:
        CoevoError: it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, env=kept)
        except OSError as error:
            raise CoevoError(f"env.command={command[0]}: {error.strerror}: name a program that is there") from None

    def exchange(self, message: Mapping[str, Any]) -> Iterator[bytes]:
        """Write a line, and read those that follow."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise CoevoError("the MCP server has ended: env.command starts none that stays") from None
        if "method" not in message or "id" not in message:
            return
        while line := self._process.stdout.readline(MAX_MESSAGE_BYTES):
            yield line
        raise CoevoError("the MCP server has ended: env.command starts none that stays")

    def agreed(self, version: str) -> None:
        """No message names it."""

    def close(self) -> None:
        """End the input of the process, then the process."""
        with suppress(OSError):
            self._process.communicate(timeout=STOP_TIMEOUT_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class HttpTransport:
    """Streamable HTTP: a request for each message.

    Args:
        url: address of the server's endpoint.
        token: bearer token; empty for none.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url, self._opener = url, opener_of(url, "env.url")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def exchange(self, message: Mapping[str, Any]) -> Iterator[bytes]:
        """Post a message, and read the response: JSON, or a stream of events."""
        request = Request(self._url, json.dumps(message).encode(), self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                session = response.headers.get("Mcp-Session-Id")
                if session is not None and session.isprintable() and len(session) <= 500:
                    self._headers["Mcp-Session-Id"] = session
                if "text/event-stream" in response.headers.get("Content-Type", ""):
                    yield from _events(response)
                elif body := response.read(MAX_MESSAGE_BYTES):
                    yield body
        except HTTPError as error:
            error.close()
            raise CoevoError(f"env.url={self._url}: state {error.code}: correct url or key") from None
        except (OSError, HTTPException) as error:
            raise CoevoError(f"env.url={self._url}: it does not answer ({error}): start the server") from error

    def agreed(self, version: str) -> None:
        """Name the version in each further request."""
        if version.isascii() and version.isprintable():
            self._headers["MCP-Protocol-Version"] = version

    def close(self) -> None:
        """Delete the session."""
        with suppress(OSError, HTTPException):
            self._opener.open(
                Request(self._url, headers=self._headers, method="DELETE"), timeout=STOP_TIMEOUT_S
            ).close()


def _events(response: Any) -> Iterator[bytes]:
    """Data of each event of a stream."""
    data, left = list[bytes](), MAX_MESSAGE_BYTES
    while left > 0 and (line := response.readline(left)):
        left -= len(line)
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line.strip() and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)
