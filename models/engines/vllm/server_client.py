"""Client of one vLLM server: JSON over HTTP, and two kinds of failure."""

import json
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError

from coevo.utilities.errors import CoevoError
from coevo.utilities.local_http import opener

KEY = "COEVO_VLLM_API_KEY"
"""Environment variable with the key of servers that are given by URL."""


OPENER = opener(direct=True)
"""Opener without proxies: a web proxy cannot reach this machine's ports."""


class UnreachableError(CoevoError):
    """The server does not answer, in time or at all, or its engine is broken."""


class ServerRefusedError(CoevoError):
    """The server refuses the request."""


class MissingError(ServerRefusedError):
    """The server has no such path."""


class ConflictError(ServerRefusedError):
    """The server has changed since, and does not fit the request."""


KINDS = {404: MissingError, 409: ConflictError}
"""Kinds of refusal, by HTTP status."""


class Client:
    """One server.

    Args:
        url: its root.
        timeout: maximum seconds for an answer.
        key: sent with every request; empty for none.
    """

    def __init__(self, url: str, timeout: float, key: str = "") -> None:
        self.url = url.rstrip("/")
        self._timeout = timeout
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a request and return the server's answer; None if it is empty.

        Raises:
            UnreachableError: the server does not answer, or its engine is broken.
            RefusedError: the server refuses; ``MissingError`` if it does not know the path, ``ConflictError``
                if it has changed since.
        """
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), self._headers)
        try:
            with OPENER.open(request, timeout=self._timeout) as response:
                said = response.read()
            return json.loads(said) if said[:1] in (b"{", b"[") else None
        except HTTPError as error:
            reason = _message(error)
            if error.code >= 500:
                raise UnreachableError(f"the vLLM server at {self.url} answers {error.code} ({reason})") from None
            kind = KINDS.get(error.code, ServerRefusedError)
            remedy = f": set {KEY} to its key" if error.code == 401 else ""
            raise kind(f"the vLLM server at {self.url} refuses {path} ({error.code}: {reason}){remedy}") from None
        except (OSError, ValueError) as error:
            raise UnreachableError(f"the vLLM server at {self.url} does not answer ({_line(error)})") from None

    def is_ready(self) -> bool:
        """True if the server takes requests."""
        try:
            with OPENER.open(f"{self.url}/health", timeout=min(5.0, self._timeout)) as response:
                return bool(response.status == 200)
        except OSError:
            return False


def _message(error: HTTPError) -> str:
    text = error.read().decode(errors="replace")
    try:
        said = json.loads(text)
        return _line(said["error"]["message"] if "error" in said else said)
    except (ValueError, KeyError, TypeError):
        return _line(text)


def _line(text: object) -> str:
    return " ".join(str(text).split())[:200]
