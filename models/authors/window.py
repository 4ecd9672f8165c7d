"""Context length of a model, as its endpoint states it in the list of its models."""

import httpx2
from openai import APIError, AsyncOpenAI
from pydantic import AliasChoices, BaseModel, Field, ValidationError

STATED = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Names of the context length in tokens: of vLLM and SGLang, OpenRouter and Together, Groq, Mistral."""
LONGEST = 2**31


class _Meta(BaseModel):
    n_ctx: int | None = Field(default=None, ge=1, le=LONGEST)


class _Model(BaseModel):
    id: str
    context: int | None = Field(default=None, ge=1, le=LONGEST, validation_alias=AliasChoices(*STATED))
    meta: _Meta | None = None


class _Models(BaseModel):
    data: list[_Model]


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
