"""Tokens that an endpoint reports for its answers."""

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

Count = Annotated[int, Field(ge=0, le=2**31)]


class Usage(BaseModel):
    """Tokens that a body reports.

    Attributes:
        prompt_tokens: of the question; None or 0 if it reports none.
        completion_tokens: of the answer, likewise.
    """

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class _Body(BaseModel):
    usage: Usage | None = None


def usage_of(body: bytes) -> Usage:
    """Tokens that a body reports, though the rest of it may be no completion."""
    try:
        return _Body.model_validate_json(body).usage or Usage()
    except ValidationError:
        return Usage()
