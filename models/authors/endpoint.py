"""Author behind an endpoint with OpenAI's chat completions API.

Questions wait for their answers side by side, in an event loop of a thread of its own: there a request that hangs, or
pauses before its next attempt, ends the moment nobody waits for it any more.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import httpx2
from anyio import CapacityLimiter
from anyio.from_thread import start_blocking_portal
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI

from coevo.configs.bank.author import EndpointAuthorConfig
from coevo.models.authors.answer import reply_of
from coevo.models.authors.base import failed
from coevo.models.authors.connection import check_address, client_of, key_of
from coevo.models.authors.constraint import Constraint, Kind
from coevo.models.authors.secret import Secret
from coevo.models.authors.usage import BYTES, estimated
from coevo.records.inert import encodable, visible
from coevo.records.writing import Question, Reply

DEAD = 3
"""Number of questions in a row that the endpoint does not answer, after which no other is asked for a while."""
REST = 300.0
"""Seconds until a dead endpoint is asked again."""
RESTING = f"the endpoint is not asked for {REST:.0f} s, since it answered none of {DEAD} questions in a row"
"""Fault of a question that is not sent."""
BROKEN = 500
"""Lowest status of a server that cannot answer."""
REFUSED = (400, 422)
"""Status of a request with fields that the endpoint does not know."""


class EndpointAuthor:
    """Author that asks an endpoint.

    Args:
        config: address, model and limits.
        warn: function that gets a line of text when the endpoint accepts less than it was asked for.

    Raises:
        CoevoError: the environment has no key, or the address has no meaning.
    """

    def __init__(self, config: EndpointAuthorConfig, warn: Callable[[str], None]) -> None:
        self._config, self._warn = config, warn
        self._key = key_of(config)
        self._secret = Secret(self._key)
        self._constraint = Constraint(config.constrain, config.url)
        self._estimates = False
        self._breaker = _Breaker()
        check_address(config.url)

    def replies(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply]]:
        """Answer every question, as ``Author.replies``."""
        client = client_of(self._config, self._key)
        with start_blocking_portal(name="author") as portal, portal.wrap_async_context_manager(client):
            batch = _Batch(client, CapacityLimiter(self._config.concurrency))
            asked = {portal.start_task_soon(self._reply, batch, each): place for place, each in enumerate(questions)}
            try:
                for place, reply in self._arriving(asked):
                    for line in self._constraint.news():
                        self._warn(line)
                    counted = self._counted(questions[place], reply)
                    yield (
                        place,
                        replace(counted, text=self._secret.hidden(reply.text), fault=self._line(reply.fault, 400)),
                    )
            finally:
                for future in asked:
                    future.cancel()

    def _counted(self, question: Question, reply: Reply) -> Reply:
        """A reply with the tokens of its question, estimated where the endpoint reports none: a budget has to end."""
        if reply.prompt_tokens or not reply.answer_tokens:  # without either, the request has failed
            return reply
        if not self._estimates and not reply.fault:
            self._estimates = True
            self._warn(f"{self._config.url} reports no tokens: they are estimated, one for {BYTES} bytes of text")
        return replace(reply, prompt_tokens=estimated(f"{question.system}{question.user}"))

    def close(self) -> None:
        """Do nothing: nothing outlives ``replies``."""

    async def _reply(self, batch: "_Batch", question: Question) -> Reply:
        async with batch.limiter:
            if self._breaker.is_open:
                return failed(RESTING)
            try:
                reply = await self._ask(batch.client, question)
            except APIConnectionError as error:
                self._breaker.count(answered=False)
                late = f"nothing within bank.writer.author.timeout={self._config.timeout:g}"
                reason = late if isinstance(error, APITimeoutError) else error.__cause__ or error
                return failed(f"the endpoint does not answer ({reason})")
            except APIStatusError as error:
                self._breaker.count(answered=error.status_code < BROKEN)
                return failed(self._refusal(error))
            self._breaker.count(answered=True)
            return reply

    def _arriving(self, asked: Mapping["Future[Reply]", int]) -> Iterator[tuple[int, Reply]]:
        """Places and replies as they arrive; at the end of the time the others are faults."""
        left, seconds = dict(asked), self._config.seconds
        try:
            for future in as_completed(asked, timeout=seconds):
                yield left.pop(future), future.result()
        except TimeoutError:
            for place in left.values():
                if len(left) == len(asked):  # not slow, but dead
                    self._breaker.count(answered=False)
                yield place, failed(f"the endpoint did not answer within bank.writer.author.seconds={seconds:g}")

    async def _ask(self, client: AsyncOpenAI, question: Question) -> Reply:
        """Ask, with a weaker constraint for as long as the endpoint refuses a stronger one."""
        while True:
            kind = self._constraint.kind
            try:
                body = self._body(question, kind)
                response = await client.post("/chat/completions", cast_to=httpx2.Response, body=body)
                return reply_of(response.content, self._config.max_new_tokens)
            except APIStatusError as error:
                constrained = bool(question.schema) and error.status_code in REFUSED
                if not constrained or not self._constraint.weaken(kind, self._line(_message(error))):
                    raise

    def _body(self, question: Question, kind: Kind) -> dict[str, Any]:
        texts = {"system": question.system, "user": question.user}
        messages = [{"role": role, "content": encodable(text)} for role, text in texts.items() if text]
        fields: Mapping[str, Any] = {
            "model": self._config.model,
            "messages": messages,
            "temperature": self._config.temperature,
            "max_tokens": self._config.max_new_tokens,
            **self._constraint.fields(question, kind),
            **self._config.extra,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _refusal(self, error: APIStatusError) -> str:
        status, name = error.status_code, self._config.key
        if error.response.is_redirect:
            return f"the endpoint redirects ({status}), which is not followed: correct bank.writer.author.url"
        remedy = f"; check the key in {name}" if name else "; name the variable of a key in bank.writer.author.key"
        reason = self._line(_message(error))
        return f"the endpoint refuses ({status}: {reason}){remedy if status in (401, 403) else ''}"

    def _line(self, text: str, length: int = 200) -> str:
        """Text of an endpoint on one short line, without the key."""
        # Hidden first: half a key at the end of the line would not be found.
        return self._secret.hidden(" ".join(visible(text).split()))[:length]


@dataclass
class _Batch:
    """Questions that are asked together.

    Attributes:
        client: connection to the endpoint.
        limiter: limit of the questions that wait at once.
    """

    client: AsyncOpenAI
    limiter: CapacityLimiter


@dataclass
class _Breaker:
    """Guard against an endpoint that hangs: batches after the one that found it dead are refused at once.

    Discovery@k and the writer ask batch after batch, and each could wait for ``seconds``.

    Attributes:
        unanswered: number of the latest questions in a row that the endpoint did not answer.
        until: time of ``monotonic`` at which it is asked again.
    """

    unanswered: int = 0
    until: float = 0.0

    @property
    def is_open(self) -> bool:
        """True while no question is asked."""
        return self.unanswered >= DEAD and monotonic() < self.until

    def count(self, *, answered: bool) -> None:
        """Count a question."""
        self.unanswered = 0 if answered else self.unanswered + 1
        if self.unanswered >= DEAD:
            self.until = monotonic() + REST


def _message(error: APIStatusError) -> str:
    """Reason that an endpoint gives."""
    body = error.body
    given = (body.get("message") or body.get("detail") or body) if isinstance(body, dict) else body
    return str(given or error.response.reason_phrase)
