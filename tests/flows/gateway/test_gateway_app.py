"""Parts of the gateway's application by themselves: tokens of sessions, and its watch over abandoned ones."""

import asyncio
import logging
from time import monotonic

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from coevo.flows.endpoint.origin_guard import hosts_of
from coevo.flows.gateway import gateway_app
from coevo.flows.gateway.gateway_app import Gateway, Tokens, gateway_application
from coevo.tasks.gateway import gateway_session
from coevo.tasks.gateway.gateway_session import SessionLimits, Sessions
from coevo.tasks.gateway.request_gate import RequestGate
from coevo.tasks.gateway.session_store import SessionStore
from coevo.utilities.errors import CoevoError


def with_token(token):
    return Request({"type": "http", "headers": [(b"authorization", f"Bearer {token}".encode())]})


def test_a_token_of_a_session_opens_it_in_its_run_alone():
    here, there = Tokens("secret", "first"), Tokens("secret", "other")
    here.check(with_token(here.of("one")), "one")
    for tokens, session in ((there, "one"), (here, "two")):
        with pytest.raises(HTTPException, match="token is wrong"):
            tokens.check(with_token(here.of("one")), session)


def test_the_watch_goes_on_after_a_session_that_cannot_be_kept(monkeypatch, caplog):
    class Failing:
        looked = 0

        def expire(self):
            self.looked += 1
            return [ValueError("bad session")]

    monkeypatch.setattr(gateway_app, "EXPIRE_INTERVAL_S", 0.001)
    failing = Failing()
    app = gateway_application(Gateway(None, failing, Tokens("secret", "first"), 1, {}), hosts_of("127.0.0.1", ()))

    async def watch():
        async with app.router.lifespan_context(app):
            async with asyncio.timeout(20):
                while failing.looked < 3:
                    await asyncio.sleep(0.001)

    with caplog.at_level(logging.ERROR, "uvicorn.error"):
        asyncio.run(watch())
    assert "bad session" in caplog.text


class Reached:
    """An agent that tells which session a request reached."""

    async def prompt(self, session, asked):
        raise CoevoError(f"reached {session.name}")


async def received():
    return {"type": "http.request", "body": b'{"model": "any", "messages": [{"role": "user", "content": "go"}]}'}


def test_a_session_whose_request_waits_at_the_gate_is_not_abandoned(tmp_path, monkeypatch):
    passed = [0.0]
    monkeypatch.setattr(gateway_session, "monotonic", lambda: monotonic() + sum(passed))
    store = SessionStore(tmp_path)
    sessions = Sessions(store, SessionLimits(idle=1000), "training", "first@3", "")
    gateway = Gateway(Reached(), sessions, Tokens("secret", "first"), 1000, {}, RequestGate(is_open=False))
    scope = {"type": "http", "method": "POST", "path": "/s/one/v1/chat/completions", "path_params": {"session": "one"}}
    asked = {**scope, "headers": [(b"authorization", b"Bearer secret")], "query_string": b"", "server": ("x", 1)}

    async def wait():
        waiting = [asyncio.ensure_future(gateway.complete(Request(asked, received))) for _ in range(2)]
        for _ in range(100):
            await asyncio.sleep(0)  # both are at the gate
        sessions.open("one")
        sessions.open("idle")
        waiting[0].cancel()  # one of two goes away
        passed.append(2000)
        sessions.expire()
        assert (list(store.ended), sessions.counts()["open"]) == (["idle"], 1)
        gateway.gate.open()
        with pytest.raises(CoevoError, match="reached one"):
            await waiting[1]
        sessions.expire()
        assert sessions.counts()["open"] == 1  # the wait counts as its use
        passed.append(2000)
        sessions.expire()
        assert sessions.counts()["open"] == 0

    asyncio.run(wait())
    store.close()
