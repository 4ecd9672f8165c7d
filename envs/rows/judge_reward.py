"""A judge: a model at an endpoint that answers a question about an answer with a number, and nothing else.

Requests go to the configured address alone: redirections are refused, and a proxy is passed by on this machine and
where the user excepts the address.
"""

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPException
from time import sleep
from typing import Any
from urllib.error import HTTPError
from urllib.request import OpenerDirector, Request

from pydantic import BaseModel, Field, ValidationError

from coevo.configs.proxies import opener_of, reach
from coevo.configs.rows_config import PLACES, JudgeRewardConfig
from coevo.utilities.errors import CoevoError

MAX_RESPONSE_BYTES = 2**20
"""Most bytes of a response."""
ADDRESS = "env.reward: url of the judge"
"""Setting of the address, in messages."""
NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})")
"""Form of a reply, without blanks around it."""
RETRY_INTERVAL_S = 0.2
"""Seconds before a question is sent again, doubled each time."""
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504)
"""States of a response after which a question is sent again."""


class JudgeError(CoevoError):
    """A reply that is no number, or an endpoint that does not reply."""


class _JudgeMessage(BaseModel):
    content: str = Field(max_length=MAX_RESPONSE_BYTES)


class _JudgeChoice(BaseModel):
    message: _JudgeMessage


class JudgeReply(BaseModel):
    """The part of a response that is read; other fields are ignored."""

    choices: list[_JudgeChoice] = Field(min_length=1, max_length=1)


def judge_of(config: JudgeRewardConfig, key: str) -> Callable[[str, Mapping[str, Any]], Awaitable[float]]:
    """Coroutine function that asks for the value of an answer to a row; ``key`` is the API key, or empty."""
    opener, threads = opener_of(config.url, ADDRESS), ThreadPoolExecutor(config.concurrency)

    async def judge(answer: str, row: Mapping[str, Any]) -> float:
        asked = partial(_asked, config, opener, key, question(config.prompt, answer, row))
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


def _asked(config: JudgeRewardConfig, opener: OpenerDirector, key: str, text: str) -> float:
    """Ask until there is a reply, or no repetition is left; a reply that is no number is not asked for again."""
    for attempt in range(config.retries + 1):
        try:
            return number_in(_sent(config, opener, key, text))
        except HTTPError as error:
            error.close()
            reason, again = f"state {error.code}", error.code in AGAIN
        except (OSError, HTTPException) as error:
            reason, again = f"{type(error).__name__}: {str(error)[:100]}", True
        if not again or attempt == config.retries:
            break
        sleep(RETRY_INTERVAL_S * 2**attempt)
    raise JudgeError(f"the judge at {config.url} does not reply ({reason}): start it, or correct url, key or model")


def _sent(config: JudgeRewardConfig, opener: OpenerDirector, key: str, text: str) -> bytes:
    body = {
        "model": config.model,
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "seed": config.seed,
        "max_tokens": config.max_tokens,
    }
    headers = {"Content-Type": "application/json", "User-Agent": "coevo", "Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    address = f"{config.url.rstrip('/')}/chat/completions"
    request = Request(address, json.dumps(body).encode(), headers)
    with opener.open(request, timeout=config.seconds) as response:
        content: bytes = response.read(MAX_RESPONSE_BYTES + 1)
    if len(content) > MAX_RESPONSE_BYTES:
        raise JudgeError(
            f"the judge's response has more than {MAX_RESPONSE_BYTES} bytes: name an endpoint of chat completions"
        )
    return content
