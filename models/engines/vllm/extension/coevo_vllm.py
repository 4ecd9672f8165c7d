"""ASGI middleware that coevo adds to a vLLM server: a seed per prompt, a check of the weights, a key for every path.

vLLM's ``/v1/completions`` takes one seed for all prompts of a request, and then draws alike for each of them. ``Seeds``
adds ``POST /coevo/completions``: the same fields, and ``seeds``, one per prompt. ``POST /coevo/weights`` notes the
digest of the weights that are loaded; a completion that asks for other ``weights`` is refused, since vLLM would answer
it with the wrong ones. (Several API servers in front of one engine share no memory: there, nothing is refused.) vLLM
requires its API key under a few paths only, not for loading weights or calling methods; ``KeyGuard`` requires it
everywhere. Both run in the server's environment (``--middleware coevo_vllm.Seeds --middleware coevo_vllm.KeyGuard``,
the key outermost, with this folder on ``PYTHONPATH``) and import nothing of coevo.
"""

import asyncio
import os
import secrets
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine.exceptions import EngineDeadError

PATH, WEIGHTS = "/coevo/completions", "/coevo/weights"
SAMPLING = ("max_tokens", "temperature", "top_p", "top_k", "stop_token_ids", "logprobs")


class Seeds:
    """Answers ``PATH`` and ``WEIGHTS``, and passes all other requests on."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"] not in (PATH, WEIGHTS):
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = _complete if scope["path"] == PATH else _note
        try:
            response = JSONResponse(await answer(request.app.state, await request.json()))
        except PermissionError as error:
            response = JSONResponse({"error": {"message": str(error)}}, 409)
        except (KeyError, TypeError, ValueError) as error:
            response = JSONResponse({"error": {"message": f"{type(error).__name__}: {error}"}}, 400)
        except EngineDeadError as error:
            response = JSONResponse({"error": {"message": str(error)}}, 500)
        await response(scope, receive, send)


class KeyGuard:
    """Refuses every request except ``GET /health`` that lacks the key of ``VLLM_API_KEY``.

    Raises:
        ValueError: the variable is empty or not set.
    """

    def __init__(self, app: ASGIApp) -> None:
        if not os.environ.get("VLLM_API_KEY"):
            raise ValueError("VLLM_API_KEY is not set: set it to the key of this server")
        self.app = app
        self._header = f"Bearer {os.environ['VLLM_API_KEY']}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan" or self._is_open(scope) or self._has_key(scope):
            await self.app(scope, receive, send)
        else:
            await JSONResponse({"error": {"message": "the key is missing or wrong"}}, 401)(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        return (scope["type"], scope["path"], scope.get("method")) == ("http", "/health", "GET")

    def _has_key(self, scope: Scope) -> bool:
        given = dict(scope["headers"]).get(b"authorization", b"")
        return secrets.compare_digest(given, self._header)


async def _note(state: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Note the weights that are loaded."""
    state.coevo_weights = asked["weights"]
    return {}


def _check_weights(state: Any, asked: dict[str, Any]) -> None:
    """Raise ``PermissionError`` if other weights are loaded than those that are asked for."""
    there = getattr(state, "coevo_weights", "")
    if asked.get("weights", there) != there and state.args.api_server_count in (None, 1):
        raise PermissionError("it has other weights: another process has loaded its own, or it was restarted")


async def _complete(state: Any, asked: dict[str, Any]) -> dict[str, Any]:
    _check_weights(state, asked)
    adapters = state.openai_serving_models.lora_requests
    adapter = adapters[asked["model"]] if "model" in asked else None
    settings = {field: asked[field] for field in SAMPLING}
    batch, engine = uuid4().hex, state.engine_client

    async def one(row: int, prompt: list[int], seed: int) -> dict[str, Any]:
        params = SamplingParams(
            **settings, seed=seed, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY, skip_clone=True
        )
        prompt_ids = {"prompt_token_ids": prompt}
        # One output per prompt: it comes when the last token is drawn.
        (output,) = [each async for each in engine.generate(prompt_ids, params, f"{batch}-{row}", lora_request=adapter)]
        drawn = list(output.outputs[0].token_ids)
        logprobs = [at[token].logprob for at, token in zip(output.outputs[0].logprobs, drawn, strict=True)]
        return {"index": row, "token_ids": drawn, "logprobs": {"token_logprobs": logprobs}}

    rows = zip(asked["prompt"], asked["seeds"], strict=True)
    return {"choices": await asyncio.gather(*(one(row, prompt, seed) for row, (prompt, seed) in enumerate(rows)))}
