"""Parts of the gateway's application by themselves: tokens of sessions, and its watch over abandoned ones."""

import asyncio
import logging

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from coevo.flows.endpoint.origin_guard import hosts_of
from coevo.flows.gateway import gateway_app
from coevo.flows.gateway.gateway_app import Gateway, Tokens, gateway_application


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
