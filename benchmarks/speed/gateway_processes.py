"""The two processes of the gateway's benchmark: ``python -m benchmarks.speed.gateway_processes stub|gateway …``.

The stub answers like a vLLM server of token ids, after a delay, with drawn tokens and log-probs; the gateway is the
application of ``coevo gateway`` before it, with a tokenizer of Qwen3's kind and no bank.
"""

import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.speed.rendering import qwen
from coevo.configs.context_config import ContextConfig
from coevo.flows.endpoint.origin_guard import hosts_of
from coevo.flows.gateway.gateway_app import Gateway, Tokens, gateway_application
from coevo.models.engines.requests import Request, completions_of
from coevo.models.engines.vllm.server_client import Client
from coevo.models.policy.context import Context
from coevo.models.policy.language_model import Policy
from coevo.models.policy.message_prompts import MessagePrompts
from coevo.records.episode import Completion
from coevo.tasks.gateway.chat_agent import ChatAgent, root_of
from coevo.tasks.gateway.draw_queue import AT_ONCE, DrawQueue
from coevo.tasks.gateway.gateway_session import SessionLimits, Sessions
from coevo.tasks.gateway.session_store import SessionStore

HOST = "127.0.0.1"
TOKEN = "token"
DRAWN = 32
"""Tokens of an answer."""
TOKEN_ID_BOUND = 4000
"""Bound of the drawn token ids, which are plain text of the tokenizer."""


def stub(port: int, delay: float) -> None:
    """Answer every prompt with ``DRAWN`` random tokens, after ``delay`` seconds."""
    rng = random.Random(0)

    async def complete(request: HttpRequest) -> Response:
        prompts = (await request.json())["prompt"]
        if delay:
            await asyncio.sleep(delay)
        return JSONResponse({"choices": [_choice(rng) for _ in prompts]})

    async def alive(_: HttpRequest) -> Response:
        return JSONResponse({})

    _serve(Starlette(routes=[Route("/v1/completions", complete, methods=["POST"]), Route("/health", alive)]), port)


def _choice(rng: random.Random) -> dict[str, Any]:
    drawn = [rng.randrange(300, TOKEN_ID_BOUND) for _ in range(DRAWN)]
    return {"token_ids": drawn, "logprobs": {"token_logprobs": [-rng.random() for _ in drawn]}}


class StubEngine:
    """Engine whose answers the stub draws; it is asked as vLLM's servers are.

    Args:
        url: address of the stub.
    """

    longest_prompt = 2**20

    def __init__(self, url: str) -> None:
        tokenizer = qwen()
        model = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=tokenizer.eos_token_id))
        self.policy = Policy(model, tokenizer)
        self._client = Client(url, 60.0)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt."""
        body = {"prompt": [request.prompt_ids for request in requests], "max_tokens": DRAWN, "logprobs": 0}
        choices = self._client.post("/v1/completions", body)["choices"]
        drawn = [list(zip(each["token_ids"], each["logprobs"]["token_logprobs"], strict=True)) for each in choices]
        return completions_of(self.policy.tokenizer, [self.policy.tokenizer.eos_token_id], drawn)


def gateway(port: int, url: str, directory: Path) -> None:
    """Serve the gateway before the stub at ``url``; sessions are kept in ``directory``."""
    engine: Any = StubEngine(url)
    words, config = engine.policy.tokenizer, ContextConfig(style="chat")
    queue = DrawQueue(engine, 1, AT_ONCE)
    prompts = MessagePrompts(words, config.template)
    agent = ChatAgent(engine, queue, Context(config, words), prompts, None, root_of(0, 0))
    sessions = Sessions(SessionStore(directory), SessionLimits(), "training", "bench@0", "")
    parts = Gateway(agent, sessions, Tokens(TOKEN, "bench"), 4 * 2**20, {})
    _serve(gateway_application(parts, hosts_of(HOST, ())), port)


def _serve(app: Starlette, port: int) -> None:
    uvicorn.run(app, host=HOST, port=port, log_level="warning", access_log=False, server_header=False, ws="none")


if __name__ == "__main__":
    kind, at, *rest = sys.argv[1:]
    if kind == "stub":
        stub(int(at), float(rest[0]))
    else:
        gateway(int(at), rest[0], Path(rest[1]))
