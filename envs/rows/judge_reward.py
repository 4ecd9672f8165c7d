"""A judge: a model at an endpoint that answers a question about an answer with a number, and nothing else."""

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from coevo.configs.proxies import reach
from coevo.configs.rows_config import PLACES, JudgeRewardConfig
from coevo.envs.rows.endpoint_requests import MAX_RESPONSE_BYTES, CompletionsEndpoint, EndpointError, said
from coevo.utilities.errors import CoevoError

ADDRESS = "env.reward: url of the judge"
"""Setting of the address, in messages."""
NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})")
"""Form of a reply, without blanks around it."""


class JudgeError(CoevoError):
    """A reply that is no number, or an endpoint that does not reply."""


class _JudgeMessage(BaseModel):
    content: Annotated[str, BeforeValidator(said), Field(max_length=MAX_RESPONSE_BYTES)]


class _JudgeChoice(BaseModel):
    message: _JudgeMessage


class JudgeReply(BaseModel):
    """The part of a response that is read; other fields are ignored."""

    choices: list[_JudgeChoice] = Field(min_length=1, max_length=1)


def judge_of(config: JudgeRewardConfig, key: str) -> Callable[[str, Mapping[str, Any]], Awaitable[float]]:
    """Coroutine function that asks for the value of an answer to a row; ``key`` is the API key, or empty."""
    endpoint = CompletionsEndpoint("the judge", ADDRESS, config.url, config.seconds, config.retries, key)
    threads = ThreadPoolExecutor(config.concurrency)

    async def judge(answer: str, row: Mapping[str, Any]) -> float:
        asked = partial(_asked, config, endpoint, question(config.prompt, answer, row))
        return await asyncio.get_running_loop().run_in_executor(threads, asked)

    return judge


def judge_key(config: JudgeRewardConfig) -> str:
    """API key in the environment; empty for an endpoint without keys.

    Raises:
        CoevoError: there is none, the address has no meaning, or the proxy on the way cannot be used.
    """
    reach(config.url, ADDRESS, by_requests=False)
    if config.key is None:
        return ""
    key = os.environ.get(config.key, "")
    if not re.fullmatch(r"[!-~]+", key):
        raise JudgeError(
            "env.reward: the environment has no API key in the variable that key of the judge names: set it"
        )
    return key


def question(prompt: str, answer: str, row: Mapping[str, Any]) -> str:
    """A prompt with the answer and columns of the row in place of their names; braces in these are left alone."""
    values = {**row, "answer": answer}

    def filled(place: re.Match[str]) -> str:
        if place[0] in ("{{", "}}"):
            return place[0][0]
        value = values.get(place[0][1:-1])
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return PLACES.sub(filled, prompt)


def number_in(body: bytes) -> float:
    """The number that a response holds.

    Raises:
        JudgeError: it holds something else.
    """
    try:
        text = JudgeReply.model_validate_json(body).choices[0].message.content.strip()
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "response"
        raise JudgeError(f"the judge's {place[:60]} is not as it should be: {problem['msg'][:100]}") from None
    if not NUMBER.fullmatch(text):
        raise JudgeError(f"the judge replied {text[:60]!r}, not a number: ask for a number and nothing else")
    return float(text)


def _asked(config: JudgeRewardConfig, endpoint: CompletionsEndpoint, text: str) -> float:
    """Ask until there is a reply, or no repetition is left; a reply that is no number is not asked for again."""
    body = {
        "model": config.model,
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "seed": config.seed,
        "max_tokens": config.max_tokens,
    }
    try:
        content, _ = endpoint.asked(body)
    except EndpointError as error:
        raise JudgeError(str(error)) from error
    return number_in(content)
