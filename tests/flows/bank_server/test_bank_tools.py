"""The MCP tools of a bank, by the client of the package ``mcp``, and requests that are no MCP."""

import asyncio
import json
from random import Random

import pytest
from support.bank_server import served
from support.endpoint import post

import coevo

pytest.importorskip("mcp", reason="the extra mcp is not installed")

ANN_SECRET, BOB_SECRET = "the heirloom is behind the clock", "the ledger is under the floor"


@pytest.fixture
def bank(tmp_path):
    bank = coevo.open_bank(tmp_path / "bank")
    bank.add([ANN_SECRET], scope={"user": "ann"})
    bank.add([BOB_SECRET], scope={"user": "bob"})
    return bank


@pytest.fixture
def server(bank, tmp_path):
    with served(tmp_path / "bank") as found:
        yield found


def called(server, mode, *calls, **names):
    """Names of the tools, and the result of each call, as a client sees them."""
    import httpx2
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async def session():
        headers = {"Authorization": f"Bearer {server.tokens.token(names)}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode) as client,
        ):
            tools = await client.list_tools()
            results = [await client.call_tool(*call) for call in calls]
        return [tool.name for tool in tools.tools], [(each.is_error, each.content[0].text) for each in results]

    return asyncio.run(session())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_recalls_and_reports_within_its_token(server, bank, mode):
    query = {"query": "where are the heirloom and the ledger"}
    tools, ((failed, text),) = called(server, mode, ("recall", query), user="ann")
    (lesson,) = json.loads(text)["lessons"]
    assert tools == ["recall", "report_outcome"] and not failed and lesson["strategy"] == ANN_SECRET
    other = next(entry.id for entry in bank.entries() if entry.strategy == BOB_SECRET)
    _, results = called(
        server,
        mode,
        ("report_outcome", {"shown": [lesson["id"]], "success": True}),
        ("report_outcome", {"shown": [other], "success": True}),
        ("recall", query | {"scope": {"user": "bob"}}),
        ("recall", {"query": 3}),
        ("recall", {"query": "a", "x": 1}),
        ("forget", {}),
        user="ann",
    )
    assert [failed for failed, _ in results] == [False, True, True, True, True, True]
    assert all("\n" not in text and BOB_SECRET not in text for _, text in results)
    assert (bank.stats()[lesson["id"]].retrievals, bank.stats().keys()) == (1, {lesson["id"]})


ASKED = {"name": "recall", "arguments": {"query": "ledger"}}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ASKED}
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
OPEN = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}


def test_malformed_messages_are_refused_in_one_line(server):
    token = {"Authorization": f"Bearer {server.tokens.token({'user': 'ann'})}"}
    accepts = {"Accept": "application/json, text/event-stream"}
    for number in range(100):
        draw = Random(f"mcp/{number}")
        message = draw.choice([CALL, OPEN])
        text = json.dumps(message)
        match draw.randrange(4):
            case 0:
                body = text[: draw.randrange(len(text))].encode()
            case 1:
                name = draw.choice(list(message))
                body = json.dumps(message | {name: draw.choice([None, 7, [], "x" * 1000, {"user": "bob"}])}).encode()
            case 2:
                body = draw.randbytes(100)
            case _:
                params = message["params"] | {draw.choice(list(message["params"])): draw.choice([None, 7, [1], "x"])}
                body = json.dumps(message | {"params": params}).encode()
        status, answer = post(server.url, body, token | accepts, "/mcp")
        said = answer.decode()
        assert status < 500 and BOB_SECRET not in said and "\\n" not in said and "Traceback" not in said, (number, said)
    assert post(server.url, b" " * 5 * 2**20, token | accepts, "/mcp")[0] == 413
    assert post(server.url, None, token | accepts, "/mcp", "GET")[0] == 405
    assert post(server.url, json.dumps(CALL).encode(), accepts, "/mcp")[0] == 401
