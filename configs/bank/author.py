"""Authors (placeholder until merged)."""

from typing import Annotated, Literal

from pydantic import Field

from coevo.configs.base import Config


class Budget(Config):
    """b."""

    tokens: int | None = None
    """t."""
    cost: float | None = None
    """c."""


class Price(Config):
    """p."""

    prompt: float
    """p."""
    answer: float
    """a."""


class AuthorConfig(Config):
    """a."""

    budget: Budget | None = None
    """b."""
    price: Price | None = None
    """p."""


class PolicyAuthorConfig(AuthorConfig):
    """The run's own policy."""

    type: Literal["policy"] = "policy"
    """Kind."""


class EndpointAuthorConfig(AuthorConfig):
    """Endpoint."""

    type: Literal["endpoint"]
    """Kind."""


AnyAuthorConfig = Annotated[PolicyAuthorConfig | EndpointAuthorConfig, Field(discriminator="type")]
