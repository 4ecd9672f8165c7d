"""Requests to one endpoint: one pace for all, repeats after failures, and a rest from an endpoint that is dead.

The writer model and the policy behind an endpoint ask through it; each keeps its own account of what it pays.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import httpx2
from anyio import CapacityLimiter, Lock, sleep
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI

from coevo.configs.bank.writer_model_config import EndpointAccess
from coevo.models.writer_models.answer import LIMIT, read
from coevo.models.writer_models.connection import check_address, client_of, key_of
from coevo.models.writer_models.failure import After, Failure, after, message
from coevo.models.writer_models.request_pace import Traffic, backoff, pace_of
from coevo.records.inert import visible
from coevo.records.stated_error import BROKEN
from coevo.records.stated_pause import pause_in, pause_of
from coevo.records.writing import Reply

DEAD = 3
"""Number of requests in a row that the endpoint does not answer, after which no other is sent for a while."""
REST = 300.0
"""Seconds until a dead endpoint is asked again."""
RESTING = f"the endpoint is not asked for {REST:.0f} s, since it answered none of {DEAD} questions in a row"
"""Fault of a request that is not sent."""
SECRET = 8
"""Minimum characters of a key that is hidden where it appears; a shorter one is a placeholder, such as ``EMPTY``."""
# Bounded and possessive: an endpoint must not be able to write text that takes more than linear time.
_BLANKS = r"[^!-~]{0,16}+"
"""White space and invisible characters, which may stand between two characters of a key."""
_BREAKS = r"(?:[^!-~]|\\{1,8}(?:[bfnrtv]|u(?!00[2-7])[0-9a-fA-F]{4})){0,16}+"
"""These, and their escapes."""


class Secret:
    """A key to be hidden.

    Args:
        key: the key; empty if there is none.
    """

    def __init__(self, key: str) -> None:
        self._echo = echo_of(key) if len(key) >= SECRET else None

    def hidden(self, text: str) -> str:
        """Text without the key."""
        return text if self._echo is None else self._echo.sub("***", text)


@dataclass
class Wave:
    """Requests that are sent together.

    Attributes:
        client: connection to the endpoint.
        limiter: limit of the requests that wait at once.
        gate: lock of those that wait for their turn.
        until: time at which it ends.
        waited: True once the endpoint has asked to wait.
    """

    client: AsyncOpenAI
    limiter: CapacityLimiter
    gate: Lock
    until: float
    waited: bool = False


@dataclass
class Breaker:
    """Guard against an endpoint that hangs or refuses all: what follows is refused at once, and not sent.

    Discovery@k and the writer ask batch after batch, and each could wait for ``seconds``.

    Attributes:
        unanswered: number of the latest questions in a row that the endpoint did not answer.
        refusal: refusal that every question would get; empty if there was none.
        until: time of ``monotonic`` at which it is asked again.
    """

    unanswered: int = 0
    refusal: str = ""
    until: float = 0.0

    @property
    def fault(self) -> str:
        """Fault of a question that is not sent; empty while questions are."""
        if monotonic() >= self.until:
            return ""
        return self.refusal or (RESTING if self.unanswered >= DEAD else "")

    def count(self, *, answered: bool) -> None:
        """Count a question."""
        self.unanswered = 0 if answered else self.unanswered + 1
        if self.unanswered >= DEAD:
            self.refusal, self.until = "", monotonic() + REST

    def stop(self, refusal: str) -> None:
        """Ask nothing for a while, since the next question would be refused too."""
        self.refusal, self.until = refusal, monotonic() + REST


class ChatEndpoint:
    """An endpoint with OpenAI's chat completions API.

    Args:
        config: address, key and limits.
        most: maximum tokens of an answer, for messages and estimates.
        limit: setting of this maximum.

    Attributes:
        traffic: counts of the requests.

    Raises:
        CoevoError: the environment has no key, or the address has no meaning.
    """

    def __init__(self, config: EndpointAccess, most: int, limit: str = LIMIT) -> None:
        self._config, self._most, self._limit = config, most, limit
        self._key = key_of(config)
        self._secret = Secret(self._key)
        self._breaker, self._pace = Breaker(), pace_of(config.url, config.model, self._key)
        self.traffic = Traffic()
        check_address(config)

    @property
    def fault(self) -> str:
        """Reason why nothing is sent at present; empty while requests are."""
        return self._breaker.fault

    def client(self) -> AsyncOpenAI:
        """New connection, to be closed."""
        return client_of(self._config, self._key)

    def hidden(self, text: str) -> str:
        """Text of the endpoint without the key."""
        return self._secret.hidden(text)

    def line(self, text: str, length: int = 200) -> str:
        """Text of the endpoint on one short line, without the key."""
        # Hidden first: half a key at the end of the line would not be found.
        return self._secret.hidden(" ".join(visible(text).split()))[:length]

    def wave(self, client: AsyncOpenAI, seconds: float) -> Wave:
        """Requests that are sent together from now on, for so many seconds."""
        return Wave(client, CapacityLimiter(self._config.concurrency), Lock(), self._pace.until(seconds))

    async def turn(self, wave: Wave) -> float | None:
        """Wait until a request may be sent; return that time, or None if it would come too late."""
        return await self._pace.turn(wave.gate, wave.until)

    async def send(self, client: AsyncOpenAI, body: Mapping[str, Any]) -> Reply | Failure:
        """Send a request once; fields of the body that are None are left out.

        Raises:
            APIStatusError: the endpoint refuses it; ``refusal`` says what follows.
        """
        self.traffic.requests += 1
        sent = {name: value for name, value in body.items() if value is not None}
        try:
            response = await client.post("/chat/completions", cast_to=httpx2.Response, body=sent)
        except APIConnectionError as error:
            return self._unanswered(error)
        pause = pause_of(response.headers)
        found = read(response.content, self._most, self._limit, pause)
        return replace(found, pause=found.pause or pause) if isinstance(found, Failure) else found

    def answered(self, sent: float) -> None:
        """Speed up after the answer to a request that was sent at a time; a refusal of all holds nevertheless."""
        self._pace.answered(sent)
        self._breaker.count(answered=True)

    def unanswered(self) -> None:
        """Count a request that had no answer until the end of its time."""
        self._breaker.count(answered=False)

    async def goes_on(self, wave: Wave, failure: Failure, sent: float, repeats: int) -> bool:
        """Wait as long as a failure asks for; report if its request is to be sent again.

        Args:
            wave: requests that it belongs to.
            failure: what came instead of an answer.
            sent: time of the request, from ``turn``.
            repeats: number of times that it was sent again before.
        """
        if failure.after is After.WAIT:
            self.traffic.refusals += 1
            wave.waited = True
            self._pace.refused(sent, failure.pause)
            return True
        pause = failure.pause or backoff(repeats)
        more = repeats < self._config.retries and self._pace.until(pause) <= wave.until
        if failure.after is After.AGAIN and more:
            self.traffic.repeats += 1
            await sleep(pause)
            return True
        if failure.after is After.STOP:
            self._breaker.stop(failure.fault)
        elif failure.dead:
            self._breaker.count(answered=False)
        else:
            self.answered(sent)  # the request was taken, though nothing came of it
        return False

    def refusal(self, error: APIStatusError) -> Failure:
        """Failure of a request with a status that is no answer."""
        status, name = error.status_code, self._config.key
        pause = pause_of(error.response.headers) or pause_in(error.body)
        then, section = after(status, error.body, pause), self._config.section
        if error.response.is_redirect:
            fault = f"the endpoint redirects ({status}), which is not followed: correct {section}.url"
            return Failure(fault, then)
        remedy = f"; check the key in {name}" if name else f"; name the variable of a key in {section}.key"
        reason = self.line(message(error))
        fault = f"the endpoint refuses ({status}: {reason}){remedy if status in (401, 403) else ''}"
        return Failure(fault, then, pause, dead=status >= BROKEN)

    def _unanswered(self, error: APIConnectionError) -> Failure:
        late = isinstance(error, APITimeoutError)
        self.traffic.timeouts += late
        reason = f"nothing within {self._config.section}.timeout={self._config.timeout:g}"
        said = reason if late else error.__cause__ or error
        unsent = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        return Failure(f"the endpoint does not answer ({said})", After.AGAIN, dead=True, unsure=not unsent)


def echo_of(key: str) -> re.Pattern[str]:
    """Pattern of a key of printable ASCII characters in any form in which it may come back."""
    first, *others = re.findall(r"\\+|[^\\]", key)
    # In front of a backslash of the key, an escape could be that backslash.
    rest = [(_BLANKS if part.startswith("\\") else _BREAKS) + _forms(part) for part in others]
    return re.compile("".join([re.escape(key), "|", _forms(first), *rest]))


def _forms(part: str) -> str:
    """Pattern of a character, or of several backslashes, whose number an escape changes."""
    code, itself = f"{ord(part[0]):02x}", re.escape(part)
    if not part.isalnum():
        itself = r"\\{1,64}+" if part[0] == "\\" else rf"\\{{0,8}}{itself}"
    return rf"(?:{itself}|(?i:\\{{1,8}}(?:u00|x){code}|%(?:25){{0,2}}{code}|&\#(?:{ord(part[0])}|x{code});))"
