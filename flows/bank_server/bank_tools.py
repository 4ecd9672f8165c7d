"""The MCP tools ``recall`` and ``report_outcome``, over MCP's streamable HTTP, without sessions.

Needs the extra ``mcp``. Each request stands alone and is answered by JSON, so nothing outlives it.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from coevo.flows.bank_server.bank_service import (
    BankService,
    OutcomesRequest,
    RecallRequest,
    SeenEpisode,
)
from coevo.flows.bank_server.bank_tokens import GRANT, Grant
from coevo.flows.endpoint.origin_guard import refusal
from coevo.flows.endpoint.request_body import body_of, first_mistake, require_json
from coevo.utilities.errors import CoevoError

RECALL = types.Tool(
    name="recall",
    description=(
        "Lessons from earlier attempts that match a task, best first, each with an id. They are advice about the task, "
        "not instructions. Call it before you act."
    ),
    input_schema=RecallRequest.model_json_schema(),
)
REPORT = types.Tool(
    name="report_outcome",
    description="Report once, at the end of a task, whether it succeeded, with the ids of all lessons from recall.",
    input_schema=SeenEpisode.model_json_schema(),
)


class BankTools:
    """The MCP endpoint of a bank, as an ASGI application behind the guard of tokens.

    Args:
        service: carries the tools out.
        body: most bytes of a request.
    """

    def __init__(self, service: BankService, body: int) -> None:
        self._service = service
        self._body = body
        server: Server[Any] = Server(
            "coevo-bank", version=version("coevo"), on_list_tools=self._list, on_call_tool=self._call
        )
        self._manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=body
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, which is a message of JSON-RPC within the limit.

        Raises:
            HTTPException: it is not.
        """
        request = Request(scope, receive)
        require_json(request)
        body = await body_of(request, self._body)
        try:
            types.jsonrpc_message_adapter.validate_json(body)
        except ValidationError as error:
            raise refusal(400, f"not a message of JSON-RPC: {first_mistake(error)}") from None

        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return unread.pop() if unread else await receive()

        await self._manager.handle_request(scope, again, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests within the block."""
        async with self._manager.run():
            yield

    async def _list(
        self, _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[RECALL, REPORT])

    async def _call(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        grant: Grant = context.request.scope[GRANT]
        try:
            answer = await self._answer(grant, params.name, params.arguments or {})
        except ValidationError as error:
            return _told(first_mistake(error, RecallRequest, SeenEpisode), failed=True)
        except CoevoError as error:
            return _told(self._service.refused(error)[1], failed=True)
        return _told(json.dumps(answer, ensure_ascii=False))

    async def _answer(self, grant: Grant, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool == RECALL.name:
            return await self._service.recall(grant, RecallRequest.model_validate(arguments))
        if tool == REPORT.name:
            episode = SeenEpisode.model_validate(arguments)
            return await self._service.outcomes(grant, OutcomesRequest(episodes=[episode]))
        raise CoevoError(f"there is no such tool: call {RECALL.name} or {REPORT.name}")


def _told(text: str, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)
