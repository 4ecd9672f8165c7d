"""Writer model behind an endpoint with OpenAI's chat completions API.

Questions wait for their answers side by side, in an event loop of a thread of its own: there a request that hangs, or
pauses before its next attempt, ends the moment nobody waits for it any more.
"""

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import replace
from typing import Any, Literal, TypeVar

import httpx2
from anyio.from_thread import start_blocking_portal
from openai import APIError, APIStatusError, AsyncOpenAI
from pydantic import AliasChoices, BaseModel, Field, ValidationError

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models.chat_endpoint import ChatEndpoint, Wave
from coevo.models.writer_models.connection import CONNECT
from coevo.models.writer_models.failure import After, Failure, message
from coevo.models.writer_models.request_pace import Traffic
from coevo.models.writer_models.writer_model import failed
from coevo.records.inert import encodable
from coevo.records.writing import BYTES, Question, QuestionRoom, Reply, estimated

ConstraintKind = Literal["schema", "json", "none"]
KINDS: tuple[ConstraintKind, ...] = ("schema", "json", "none")
NAMES = {"schema": "response_format=json_schema", "json": "response_format=json_object", "none": "no constraint"}
_ABOUT = re.compile(r"response.?format|json.?(?:schema|object|mode)|structured.?output|schema|grammar|guided", re.I)


class Constraint:
    """Constraint that a writer model's requests ask for.

    Args:
        wanted: kind of constraint; ``auto`` begins with the strongest, and weakens when the endpoint refuses.
        url: address of the endpoint, for messages.

    Attributes:
        kind: constraint of the next request.
    """

    def __init__(self, wanted: Literal["auto"] | ConstraintKind, url: str) -> None:
        self.kind: ConstraintKind = "schema" if wanted == "auto" else wanted
        self._weakens = wanted == "auto"
        self._url = url
        self._news = list[str]()

    def fields(self, question: Question, kind: ConstraintKind) -> dict[str, Any]:
        """Fields of a request; none for a question without a schema."""
        if not question.schema or kind == "none":
            return {}
        if kind == "json":
            return {"response_format": {"type": "json_object"}}
        name = re.sub(r"\W", "_", question.purpose, flags=re.ASCII)[:64] or "answer"
        schema = {"name": name, "strict": True, "schema": json.loads(question.schema)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    def weaken(self, kind: ConstraintKind, refusal: str) -> bool:
        """Ask for less from now on if a refusal is about a constraint; report if the request may be sent again."""
        if not self._weakens or kind == "none" or not _ABOUT.search(refusal):
            return False
        if kind == self.kind:
            self.kind = KINDS[KINDS.index(kind) + 1]
            self._news.append(
                f"the endpoint {self._url} refuses {NAMES[kind]} ({refusal}): asking with {NAMES[self.kind]}; "
                f"bank.writer.model.constrain={self.kind} asks so at once"
            )
        return True

    def news(self) -> list[str]:
        """Warnings since the last call."""
        news, self._news = self._news, []
        return news


UNBOUNDED = 10**9
"""Context of a model in tokens where nobody states one."""
TEMPLATE = 64
"""Tokens of a chat template around a question."""
REFUSED = (400, 422)
"""Status of a request with fields that the endpoint does not know."""
AnsweredT = TypeVar("AnsweredT", Reply, Failure, Reply | Failure)
"""Result of a request."""
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


class EndpointWriterModel:
    """Writer model that asks an endpoint.

    Args:
        config: address, model and limits.
        warn: function that gets a line of text when the endpoint accepts less than it was asked for.

    Raises:
        CoevoError: the environment has no key, or the address has no meaning.
    """

    def __init__(self, config: EndpointWriterModelConfig, warn: Callable[[str], None]) -> None:
        self._config, self._warn = config, warn
        self._endpoint = ChatEndpoint(config, config.max_new_tokens)
        self._constraint = Constraint(config.constrain, config.url)
        self._estimates = self._warned = False
        self._context = config.context

    @property
    def traffic(self) -> Traffic:
        """Counts of its requests."""
        return self._endpoint.traffic

    def replies(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply]]:
        """Answer every question, as ``WriterModel.replies``."""
        if fault := self._endpoint.line(self._endpoint.fault, 400):
            yield from ((index, failed(fault)) for index in range(len(questions)))
            return
        client, endpoint = self._endpoint.client(), self._endpoint
        with start_blocking_portal(name="writer_model") as portal, portal.wrap_async_context_manager(client):
            wave = endpoint.wave(client, self._config.seconds)
            asked = {portal.start_task_soon(self._reply, wave, each): index for index, each in enumerate(questions)}
            try:
                for index, reply in self._arriving(asked, wave):
                    self._tell()
                    yield (
                        index,
                        replace(reply, text=endpoint.hidden(reply.text), fault=endpoint.line(reply.fault, 400)),
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
            seconds, client = min(CONNECT, self._config.timeout), self._endpoint.client()
            with start_blocking_portal(name="writer_model") as portal, portal.wrap_async_context_manager(client):
                self._context = portal.call(stated, client, self._config.model, seconds) or UNBOUNDED
        return QuestionRoom(self._context - self._config.max_new_tokens - TEMPLATE)

    def close(self) -> None:
        """Do nothing: nothing outlives ``replies``."""

    async def _reply(self, wave: Wave, question: Question) -> Reply:
        """Ask until there is an answer, nothing more to try, or no time."""
        prompt = answer = repeats = 0
        endpoint = self._endpoint
        async with wave.limiter:
            while True:
                sent = await endpoint.turn(wave)
                if sent is None or endpoint.fault:
                    return failed(endpoint.fault or self._late, prompt, answer)
                found = self._counted(question, await self._ask(wave.client, question))
                prompt, answer = prompt + found.prompt_tokens, answer + found.answer_tokens
                if isinstance(found, Reply):
                    endpoint.answered(sent)
                    return replace(found, prompt_tokens=prompt, answer_tokens=answer)
                if not await endpoint.goes_on(wave, found, sent, repeats):
                    return failed(found.fault, prompt, answer)
                repeats += found.after is After.AGAIN

    def _counted(self, question: Question, found: AnsweredT) -> AnsweredT:
        """Result with the tokens of its question, estimated where there are none: a budget has to end."""
        if found.prompt_tokens or not found.answer_tokens:  # without either, the request has failed
            return found
        self._estimates = self._estimates or isinstance(found, Reply)
        return replace(found, prompt_tokens=estimated(f"{question.system}{question.user}"))

    def _arriving(self, asked: Mapping["Future[Reply]", int], wave: Wave) -> Iterator[tuple[int, Reply]]:
        """Places and replies as they arrive; at the end of the time the others are faults."""
        left = dict(asked)
        try:
            for future in as_completed(asked, timeout=self._config.seconds):
                yield left.pop(future), future.result()
        except TimeoutError:
            for index in left.values():
                if len(left) == len(asked) and not wave.waited:  # not slow, but dead
                    self._endpoint.unanswered()
                yield index, failed(self._late)

    async def _ask(self, client: AsyncOpenAI, question: Question) -> Reply | Failure:
        """Ask once, with a weaker constraint for as long as the endpoint refuses a stronger one."""
        while True:
            kind = self._constraint.kind
            try:
                return await self._endpoint.send(client, self._body(question, kind))
            except APIStatusError as error:
                constrained = bool(question.schema) and error.status_code in REFUSED
                if not constrained or not self._constraint.weaken(kind, self._endpoint.line(message(error))):
                    return self._endpoint.refusal(error)

    @property
    def _late(self) -> str:
        return f"the endpoint did not answer within bank.writer.model.seconds={self._config.seconds:g}"

    def _body(self, question: Question, kind: ConstraintKind) -> dict[str, Any]:
        texts = {"system": question.system, "user": question.user}
        messages = [{"role": role, "content": encodable(text)} for role, text in texts.items() if text]
        return {
            "model": self._config.model,
            "messages": messages,
            "temperature": self._config.temperature,
            "max_tokens": self._config.max_new_tokens,
            **self._constraint.fields(question, kind),
            **self._config.extra,
        }


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
