"""Requests to an endpoint of OpenAI's chat completions API, from worker processes of any interpreter.

Requests go to the configured address alone: redirections are refused, and a proxy is passed by on this machine and
where the user excepts the address.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from time import monotonic, sleep
from typing import Any
from urllib.error import HTTPError
from urllib.request import OpenerDirector, Request

from coevo.configs.proxies import opener_of
from coevo.records.stated_error import error_in, status_in, words_of
from coevo.records.stated_pause import pause_in, pause_of
from coevo.utilities.errors import CoevoError

MAX_RESPONSE_BYTES = 2**20
"""Most bytes of a response."""
RETRY_INTERVAL_S = 0.2
"""Seconds before a request is sent again, doubled each time."""
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504)
"""States of a response after which a request is sent again."""


class EndpointError(CoevoError):
    """An endpoint that does not reply."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Request without a response.

    Attributes:
        reason: reason, for a person.
        again: True if the request may be sent again.
        pause: seconds that the endpoint asks for, 0 if it does not say.
    """

    reason: str
    again: bool
    pause: float = 0.0

    def __str__(self) -> str:
        return f"{self.reason}, again in {self.pause:g} s" if self.pause else self.reason


@dataclass(frozen=True)
class CompletionsEndpoint:
    """An endpoint.

    Attributes:
        who: who answers there, for messages, as "the judge".
        setting: setting that has the address.
        url: address without ``/chat/completions``.
        seconds: time limit of a request.
        retries: maximum number of times that a request is sent again after a failure.
        key: API key; empty for none.
    """

    who: str
    setting: str
    url: str
    seconds: float
    retries: int
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_opener", opener_of(self.url, self.setting))

    def asked(self, body: Mapping[str, Any], retries: int | None = None) -> tuple[bytes, int]:
        """Send a request until there is a response, or no repetition is left.

        A repetition waits as long as the endpoint asks for, if a request may take that long, and all of them together.

        Returns:
            the response, and how often the request was sent.

        Raises:
            EndpointError: there is no response.
        """
        most = self.retries if retries is None else min(retries, self.retries)
        until = monotonic() + self.seconds * (most + 1)
        for attempt in range(most + 1):
            content, refusal = self._tried(body)
            if refusal is None:
                return content, attempt + 1
            pause = max(refusal.pause, RETRY_INTERVAL_S * 2**attempt)
            if not refusal.again or attempt == most or refusal.pause > self.seconds or monotonic() + pause > until:
                break
            sleep(pause)
        raise EndpointError(
            f"{self.who} at {self.url} does not reply ({refusal}): start it, or correct url, key or model"
        )

    def _tried(self, body: Mapping[str, Any]) -> tuple[bytes, "Refusal | None"]:
        """Send a request once: the response, or why there is none."""
        try:
            content = self._sent(body)
            stated = _error(content)
            if not stated:
                return content, None
            return b"", Refusal(f"{words_of(stated)[:200]!r}", status_in(stated) in AGAIN, pause_in(stated))
        except HTTPError as error:
            with error:
                return b"", Refusal(f"state {error.code}", error.code in AGAIN, _pause(error))
        except (OSError, HTTPException) as error:
            return b"", Refusal(f"{type(error).__name__}: {str(error)[:100]}", True)

    def _sent(self, body: Mapping[str, Any]) -> bytes:
        headers = {"Content-Type": "application/json", "User-Agent": "coevo", "Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        address = f"{self.url.rstrip('/')}/chat/completions"
        opener: OpenerDirector = self._opener  # type: ignore[attr-defined]
        with opener.open(Request(address, json.dumps(body).encode(), headers), timeout=self.seconds) as response:
            content: bytes = response.read(MAX_RESPONSE_BYTES + 1)
        if len(content) > MAX_RESPONSE_BYTES:
            raise EndpointError(
                f"the response of {self.who} has more than {MAX_RESPONSE_BYTES} bytes: "
                "name an endpoint of chat completions"
            )
        return content


def said(content: Any) -> Any:
    """Text of a message's content, whose parts some endpoints send one by one; anything else as it is."""
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str)) if texts else content


def _error(content: bytes) -> Any:
    """Error that a response states though it arrived with HTTP 200; None if it states none."""
    try:
        return error_in(json.loads(content))
    except (ValueError, RecursionError):
        return None


def _pause(error: HTTPError) -> float:
    """Seconds that a refusal asks for, in its headers or in its content."""
    stated = pause_of({name.lower(): value for name, value in error.headers.items()})
    try:
        return stated or pause_in(_error(error.read(MAX_RESPONSE_BYTES)))
    except (OSError, HTTPException):
        return 0.0
