"""Writer model behind an endpoint with OpenAI's chat completions API.

Questions wait for their answers side by side, in an event loop of a thread of its own: there a request that hangs, or
pauses before its next attempt, ends the moment nobody waits for it any more.
"""

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, TypeVar

import httpx2
from anyio import CapacityLimiter, Lock, sleep
from anyio.from_thread import start_blocking_portal
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI
from pydantic import AliasChoices, BaseModel, Field, ValidationError

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models.answer import BROKEN, After, Failure, after, message, pause_of, read
from coevo.models.writer_models.connection import CONNECT, check_address, client_of, key_of
from coevo.models.writer_models.constraint import Constraint, ConstraintKind
from coevo.models.writer_models.request_pace import Pace, Traffic, backoff
from coevo.models.writer_models.writer_model import failed
from coevo.records.inert import encodable, visible
from coevo.records.writing import BYTES, Question, QuestionRoom, Reply, estimated

DEAD = 3
"""Number of questions in a row that the endpoint does not answer, after which no other is asked for a while."""
REST = 300.0
"""Seconds until a dead endpoint is asked again."""
RESTING = f"the endpoint is not asked for {REST:.0f} s, since it answered none of {DEAD} questions in a row"
"""Fault of a question that is not sent."""
UNBOUNDED = 10**9
"""Context of a model in tokens where nobody states one."""
TEMPLATE = 64
"""Tokens of a chat template around a question."""
REFUSED = (400, 422)
"""Status of a request with fields that the endpoint does not know."""
AnsweredT = TypeVar("AnsweredT", Reply, Failure, Reply | Failure)
"""Result of a request."""
SECRET = 8
"""Minimum characters of a key that is hidden where it appears; a shorter one is a placeholder, such as ``EMPTY``."""
# Bounded and possessive: an endpoint must not be able to write text that takes more than linear time.
_BLANKS = r"[^!-~]{0,16}+"
"""White space and invisible characters, which may stand between two characters of a key."""
_BREAKS = r"(?:[^!-~]|\\{1,8}(?:[bfnrtv]|u(?!00[2-7])[0-9a-fA-F]{4})){0,16}+"
"""These, and their escapes."""
STATED = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Names of the context length in tokens: of vLLM and SGLang, OpenRouter and Together, Groq, Mistral."""
MAX_CONTEXT_TOKENS = 2**31


class _Meta(BaseModel):
    n_ctx: int | None = Field(default=None, ge=1, le=MAX_CONTEXT_TOKENS)


class _Model(BaseModel):
    id: str
    context: int | None = Field(default=None, ge=1, le=MAX_CONTEXT_TOKENS, validation_alias=AliasChoices(*STATED))
    meta: _Meta | None = None


class _Models(BaseModel):
    data: list[_Model]


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


class EndpointWriterModel:
    """Writer model that asks an endpoint.

    Args:
        config: address, model and limits.
        warn: function that gets a line of text when the endpoint accepts less than it was asked for.

    Attributes:
        traffic: counts of its requests.

    Raises:
        CoevoError: the environment has no key, or the address has no meaning.
    """

    def __init__(self, config: EndpointWriterModelConfig, warn: Callable[[str], None]) -> None:
        self._config, self._warn = config, warn
        self._key = key_of(config)
        self._secret = Secret(self._key)
        self._constraint = Constraint(config.constrain, config.url)
        self._estimates = self._warned = False
        self._breaker, self._pace = _Breaker(), Pace()
        self._context = config.context
        self.traffic = Traffic()
        check_address(config.url)

    def replies(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply]]:
        """Answer every question, as ``WriterModel.replies``."""
        if fault := self._line(self._breaker.fault, 400):
            yield from ((index, failed(fault)) for index in range(len(questions)))
            return
        client = client_of(self._config, self._key)
        with start_blocking_portal(name="writer_model") as portal, portal.wrap_async_context_manager(client):
            until = self._pace.until(self._config.seconds)
            batch = _Batch(client, CapacityLimiter(self._config.concurrency), Lock(), until)
            asked = {portal.start_task_soon(self._reply, batch, each): index for index, each in enumerate(questions)}
            try:
                for index, reply in self._arriving(asked, batch):
                    self._tell()
                    yield (
                        index,
                        replace(reply, text=self._secret.hidden(reply.text), fault=self._line(reply.fault, 400)),
                    )
            finally:
                for future in asked:
                    future.cancel()

    def _tell(self) -> None:
        """Warn of what the endpoint does not do as it is asked."""
        for line in self._constraint.news():
            self._warn(line)
        if self._estimates and not self._warned:
            self._warned = True
            self._warn(f"{self._config.url} reports no tokens: they are estimated, one for {BYTES} bytes of text")

    def room(self) -> QuestionRoom:
        """Room of a question, as ``Measuring.room``: an estimate below the context that settings or endpoint state.

        A model whose context nobody states is taken to have ``UNBOUNDED`` tokens.
        """
        if self._context is None:
            seconds, client = min(CONNECT, self._config.timeout), client_of(self._config, self._key)
            with start_blocking_portal(name="writer_model") as portal, portal.wrap_async_context_manager(client):
                self._context = portal.call(stated, client, self._config.model, seconds) or UNBOUNDED
        return QuestionRoom(self._context - self._config.max_new_tokens - TEMPLATE)

    def close(self) -> None:
        """Do nothing: nothing outlives ``replies``."""

    async def _reply(self, batch: "_Batch", question: Question) -> Reply:
        """Ask until there is an answer, nothing more to try, or no time."""
        prompt = answer = repeats = 0
        async with batch.limiter:
            while True:
                sent = await self._pace.turn(batch.gate, batch.until)
                if sent is None or self._breaker.fault:
                    return failed(self._breaker.fault or self._late, prompt, answer)
                found = self._counted(question, await self._ask(batch.client, question))
                prompt, answer = prompt + found.prompt_tokens, answer + found.answer_tokens
                if isinstance(found, Reply):
                    self._pace.answered()
                    self._breaker = _Breaker()
                    return replace(found, prompt_tokens=prompt, answer_tokens=answer)
                if not await self._goes_on(batch, found, sent, repeats):
                    return failed(found.fault, prompt, answer)
                repeats += found.after is After.AGAIN

    async def _goes_on(self, batch: "_Batch", failure: Failure, sent: float, repeats: int) -> bool:
        """Wait as long as a failure asks for; report if its question is to be asked again."""
        if failure.after is After.WAIT:
            self.traffic.refusals += 1
            batch.waited = True
            self._pace.refused(sent, failure.pause)
            return True
        pause = failure.pause or backoff(repeats)
        more = repeats < self._config.retries and self._pace.until(pause) <= batch.until
        if failure.after is After.AGAIN and more:
            self.traffic.repeats += 1
            await sleep(pause)
            return True
        if failure.after is After.STOP:
            self._breaker.stop(failure.fault)
        self._breaker.count(answered=not failure.dead)
        return False

    def _counted(self, question: Question, found: AnsweredT) -> AnsweredT:
        """Result with the tokens of its question, estimated where there are none: a budget has to end."""
        if found.prompt_tokens or not found.answer_tokens:  # without either, the request has failed
            return found
        self._estimates = self._estimates or isinstance(found, Reply)
        return replace(found, prompt_tokens=estimated(f"{question.system}{question.user}"))

    def _arriving(self, asked: Mapping["Future[Reply]", int], batch: "_Batch") -> Iterator[tuple[int, Reply]]:
        """Places and replies as they arrive; at the end of the time the others are faults."""
        left = dict(asked)
        try:
            for future in as_completed(asked, timeout=self._config.seconds):
                yield left.pop(future), future.result()
        except TimeoutError:
            for index in left.values():
                if len(left) == len(asked) and not batch.waited:  # not slow, but dead
                    self._breaker.count(answered=False)
                yield index, failed(self._late)

    async def _ask(self, client: AsyncOpenAI, question: Question) -> Reply | Failure:
        """Ask once, with a weaker constraint for as long as the endpoint refuses a stronger one."""
        while True:
            kind = self._constraint.kind
            self.traffic.requests += 1
            try:
                body = self._body(question, kind)
                response = await client.post("/chat/completions", cast_to=httpx2.Response, body=body)
                found = read(response.content, self._config.max_new_tokens)
                return replace(found, pause=pause_of(response.headers)) if isinstance(found, Failure) else found
            except APIConnectionError as error:
                return self._unanswered(error)
            except APIStatusError as error:
                constrained = bool(question.schema) and error.status_code in REFUSED
                if not constrained or not self._constraint.weaken(kind, self._line(message(error))):
                    return self._refusal(error)

    def _unanswered(self, error: APIConnectionError) -> Failure:
        late = isinstance(error, APITimeoutError)
        self.traffic.timeouts += late
        reason = f"nothing within bank.writer.model.timeout={self._config.timeout:g}"
        said = reason if late else error.__cause__ or error
        return Failure(f"the endpoint does not answer ({said})", After.AGAIN, dead=True)

    @property
    def _late(self) -> str:
        return f"the endpoint did not answer within bank.writer.model.seconds={self._config.seconds:g}"

    def _body(self, question: Question, kind: ConstraintKind) -> dict[str, Any]:
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

    def _refusal(self, error: APIStatusError) -> Failure:
        status, name, pause = error.status_code, self._config.key, pause_of(error.response.headers)
        then = after(status, error.body, pause)
        if error.response.is_redirect:
            fault = f"the endpoint redirects ({status}), which is not followed: correct bank.writer.model.url"
            return Failure(fault, then)
        remedy = f"; check the key in {name}" if name else "; name the variable of a key in bank.writer.model.key"
        reason = self._line(message(error))
        fault = f"the endpoint refuses ({status}: {reason}){remedy if status in (401, 403) else ''}"
        return Failure(fault, then, pause, dead=status >= BROKEN)

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
class _Breaker:
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


async def stated(client: AsyncOpenAI, model: str, seconds: float) -> int | None:
    """Context length of a model in tokens; None if the endpoint states none.

    Args:
        client: connection to the endpoint.
        model: its name there.
        seconds: time for the only attempt.
    """
    asked = client.with_options(max_retries=0, timeout=seconds)
    try:
        response = await asked.get("/models", cast_to=httpx2.Response)
        listed = _Models.model_validate_json(response.content).data
    except (APIError, httpx2.HTTPError, ValidationError):
        return None
    found = next((each for each in listed if each.id == model), None)
    if found is None or found.context is not None:
        return None if found is None else found.context
    return None if found.meta is None else found.meta.n_ctx  # of llama.cpp
