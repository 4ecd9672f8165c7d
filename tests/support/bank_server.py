"""The server of a bank in a thread of this process, and requests to it as anybody could send them."""

import json
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from support.endpoint import post

from coevo.flows.bank_server.bank_app import bank_app
from coevo.flows.bank_server.bank_service import BankService
from coevo.flows.bank_server.bank_tokens import BankTokens
from coevo.flows.endpoint.origin_guard import hosts_of


@dataclass
class Served:
    """A server, and requests with a token for some names."""

    url: str
    tokens: BankTokens

    def ask(self, path, body, token=None, headers=None, method="POST", **names):
        """Status and parsed answer; without names the token opens all scopes."""
        token = self.tokens.token(names) if token is None else token
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, text = post(self.url, body, {"Authorization": f"Bearer {token}"} | (headers or {}), path, method)
        return status, json.loads(text) if text.strip() else None


@contextmanager
def served(path):
    """Serve the bank in a directory within the block."""
    tokens = BankTokens(path)
    app = bank_app(BankService(path), tokens, hosts_of("127.0.0.1", []))
    server = uvicorn.Server(uvicorn.Config(app, http="h11", ws="none", lifespan="on", log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", tokens)
        finally:
            server.should_exit = True
            thread.join()
